"""The config files: their paths and their values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ralph.config.document import decode, parse
from ralph.config.reading import Values, read_file
from ralph.core.errors import UsageError
from ralph.core.names import safe_name
from ralph.core.problems import Place, Problem, Severity
from ralph.host.files import read_bytes
from ralph.state.places import user_config

LIMIT = 1_000_000
SUFFIXES = (".yaml", ".yml", ".json")


def project_config(root: Path) -> Path:
    return root / ".ralph" / "config.yaml"


def is_user_config(path: Path, env: Mapping[str, str]) -> bool:
    """In the home folder, the project's config would be the user's own file."""
    return os.path.realpath(path) == os.path.realpath(user_config(env))


def named_config(root: Path, name: str) -> Path | None:
    """`.ralph/configs/NAME.*`, or None if it does not exist. The name may include its suffix."""
    folder = root / ".ralph" / "configs"
    stem = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
    safe_name(stem, "config name")
    names = [name] if stem != name else [stem + suffix for suffix in SUFFIXES]
    found = [folder / each for each in names if os.path.lexists(folder / each)]
    if len(found) > 1:
        listed = " and ".join(path.name for path in found)
        raise UsageError(f"{listed} in {folder} have the same name", hint="keep one of them, or include the suffix")
    return found[0] if found else None


def missing_config(root: Path, name: str) -> UsageError:
    from difflib import get_close_matches

    folder = root / ".ralph" / "configs"
    there = sorted(path.stem for path in folder.glob("*") if path.suffix in SUFFIXES) if folder.is_dir() else []
    close = get_close_matches(name, there, 1)
    hint = f"did you mean {close[0]}?" if close else f"available: {', '.join(there) or 'none'}"
    return UsageError(f"no config {name!r} in {folder}", hint=hint)


def read_config(path: Path, env: Mapping[str, str], within: Path | None) -> tuple[Values, list[Problem]]:
    """The values of a config file. A missing file sets nothing."""
    if not os.path.lexists(path):
        return {}, _misnamed(path)
    source = read_bytes(path, within=within, limit=LIMIT)
    return read_file(parse(decode(source, str(path)), str(path)), str(path), env)


def _misnamed(path: Path) -> list[Problem]:
    """`config.yml` and `config.json` are easily mistaken for the real name."""
    others = [path.with_suffix(suffix) for suffix in SUFFIXES if suffix != path.suffix]
    return [
        Problem(
            "not-read",
            f"this file is ignored; the expected name is {path.name}",
            Place(str(other)),
            f"rename it to {path.name}",
            Severity.WARNING,
        )
        for other in others
        if other.exists()
    ]
