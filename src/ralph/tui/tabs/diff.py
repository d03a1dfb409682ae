"""Diff: what the attempt changed, file by file."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.text import plural
from ralph.tui.rows import BLANK, Row, Rows, row
from ralph.tui.scene import Scene, attempt_head
from ralph.views.diff import FileDiff

_MOST_OPEN = 400
"""Lines of a file that is unfolded from the start."""
_STYLES = {"+": "good", "-": "bad", "\\": "dim"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "binary": "#"}


def rows(scene: Scene) -> Rows:
    return list(_rows(scene))


def _rows(scene: Scene) -> Iterator[Row]:
    yield from attempt_head(scene)
    if scene.attempt is None:
        return
    diff = scene.source.diff(scene.attempt)
    yield BLANK
    if diff.why_not:
        yield row((diff.why_not, "dim"))
        yield from (row(f"  {path}") for path in scene.attempt.changed)
        return
    added, removed = (sum(getattr(file, name) for file in diff.files) for name in ("added", "removed"))
    yield row(
        (plural(len(diff.files), "file"), "bold"), (f"  +{added}", "good"), (f" -{removed}", "bad"), f"  {diff.of}"
    )
    for file in sorted(diff.files, key=_is_own):  # stable
        yield from _file(scene, file)
    if diff.is_cut:
        yield row(("… too long: the rest is not shown", "warn"))


def _file(scene: Scene, file: FileDiff) -> Iterator[Row]:
    key = f"f{file.path}"
    is_open = scene.is_open(
        key, usually=not _is_own(file) and sum(len(hunk.lines) for hunk in file.hunks) <= _MOST_OPEN
    )
    yield row(
        (f"{'▾' if is_open else '▸'} {_SIGNS.get(file.status, '~')} ", "dim"),
        (file.path, "bold"),
        (f"  {file.status}", "dim"),
        (f"  +{file.added}", "good"),
        (f" -{file.removed}", "bad"),
        key=key,
        folds=True,
    )
    for hunk in file.hunks if is_open else ():
        yield row((hunk.head, "info"))
        for line in hunk.lines:
            place = f"{line.old or '':>4} {line.new or '':>4} "
            yield row(
                (place if scene.room > 70 else "", "dim"), (f"{line.sign}{line.text}", _STYLES.get(line.sign, ""))
            )


def _is_own(file: FileDiff) -> bool:
    """Ralph's plan and log change in every commit: they come last, folded."""
    return file.path.startswith((".ralph/", "ralph/"))


def path_of(key: str) -> str:
    """The file that a row is about; empty: none."""
    return key[1:] if key.startswith("f") else ""
