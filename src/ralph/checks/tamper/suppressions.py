"""Comments that silence a checker. A single one is fine; many at once, or one for a whole file, are reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralph.checks.tamper.source import line_at
from ralph.checks.tamper.values import Finding

_BULK = 4

_ONE = re.compile(
    r"#\s*noqa\b|#\s*type:\s*ignore|#\s*pyright:\s*ignore|#\s*pragma:\s*no\s*cover"
    r"|#\s*pylint:\s*disable|#\s*nosec\b|eslint-disable(?:-next)?-line"
    r"|eslint-disable\b|@ts-ignore|@ts-expect-error|istanbul ignore|[cv]8 ignore|biome-ignore"
    r"|//\s*nolint|rubocop:disable|@phpstan-ignore|@SuppressWarnings"
    r"|#\[allow\(|#pragma warning disable|NOLINT\b|\[SuppressMessage|@Suppress\(|prettier-ignore|shellcheck disable"
)
_WHOLE = re.compile(
    r"^\s*#\s*(?:ruff|flake8):\s*noqa\b(?!:)|^\s*#\s*mypy:\s*ignore-errors"
    r"|^\s*#\s*type:\s*ignore\s*$|^\s*#\s*pylint:\s*(?:skip-file|disable-all)"
    r"|^\s*#\s*pyright:\s*(?:basic|off)|^\s*/\*\s*eslint-disable\s*\*/|^\s*//\s*@ts-nocheck"
    r"|^\s*#!\[allow\(|^\s*/\*\s*istanbul ignore file|^\s*//\s*nolint:all",
    re.MULTILINE,
)


def suppression_findings(texts: Sequence[tuple[str, str, str, str]]) -> Iterator[Finding]:
    """`texts`: path, old text, new text and added lines of every changed file of code."""
    added: list[tuple[str, int, str]] = []
    for path, old, new, came in texts:
        if not (_ONE.search(came) or _WHOLE.search(came)):
            continue
        whole = _WHOLE.search(new)
        if whole and not _WHOLE.search(old):
            yield Finding(
                "warnings-silenced",
                path,
                line_at(new, whole.end()),
                f"`{whole[0].strip()}` silences a checker for the whole file",
                "low",
            )
        matches = list(_ONE.finditer(new))
        more = len(matches) - len(_ONE.findall(old))
        if more > 0:
            added += [(path, line_at(new, match.start()), match[0]) for match in matches[-more:]]
    if len(added) >= _BULK:
        path, line, text = added[0]
        yield Finding(
            "warnings-silenced", path, line, f"{len(added)} comments such as `{text.strip()}` were added", "low"
        )
