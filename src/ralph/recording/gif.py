"""A GIF, made by installed programs: `agg` from the asciicast, or `rsvg-convert` and ImageMagick from stills."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process.programs import which
from ralph.host.process.start import run
from ralph.recording.cast import as_cast
from ralph.recording.storyboard import Storyboard
from ralph.recording.svg import as_still
from ralph.recording.theme import Theme

_PATIENCE = 300.0
NEEDED = "install agg, or rsvg-convert (librsvg2-bin) and ImageMagick; --svg and --cast need no other program"


def as_gif(board: Storyboard, theme: Theme, env: Mapping[str, str], workspace: Path) -> bytes:
    """Programs inside the workspace are not used. A GIF has no theme of its own: `auto` is dark."""
    theme = Theme.LIGHT if theme is Theme.LIGHT else Theme.DARK
    path = env.get("PATH", "")
    agg, rsvg, *magick = (which(name, path, workspace) for name in ("agg", "rsvg-convert", "magick", "convert"))
    assembler = next(filter(None, magick), None)
    if agg is None and (rsvg is None or assembler is None):
        raise SetupError("no program here can make a GIF", hint=NEEDED)
    with tempfile.TemporaryDirectory(prefix="ralph-record-") as name:
        folder = Path(name)
        target = folder / "run.gif"
        if agg is not None:
            _by_agg(agg, board, theme, target, env)
        else:
            assert rsvg is not None
            assert assembler is not None
            _by_stills(rsvg, assembler, board, theme, target, env)
        return target.read_bytes()


def _by_agg(agg: str, board: Storyboard, theme: Theme, target: Path, env: Mapping[str, str]) -> None:
    cast = target.with_name("run.cast")
    cast.write_text(as_cast(board, theme), encoding="utf-8")
    # Each silence is already as long as it is to be, and the last event is the end.
    times = ["--idle-time-limit", "1000", "--last-frame-duration", "0.01"]
    _call([agg, *times, str(cast), str(target)], target, env)


def _by_stills(
    rsvg: str, assembler: str, board: Storyboard, theme: Theme, target: Path, env: Mapping[str, str]
) -> None:
    argv, now = [assembler, "-loop", "0"], 0.0
    for number, frame in enumerate(board.frames):
        still = target.with_name(f"{number:04}.svg")
        still.write_text(as_still(board, frame, theme), encoding="utf-8")
        picture = still.with_suffix(".png")
        _call([rsvg, "--output", str(picture), str(still)], picture, env)
        delay = round((now + frame.seconds) * 100) - round(now * 100)
        argv += ["-delay", str(delay), str(picture)]
        now += frame.seconds
    _call([*argv, "-layers", "OptimizeFrame", "+dither", "-colors", "32", str(target)], target, env)


def _call(argv: Sequence[str], target: Path, env: Mapping[str, str]) -> None:
    done = run(argv, cwd=target.parent, env=env, timeout=_PATIENCE)
    if done.ok and target.is_file():
        return
    last = done.err.decode("utf-8", "replace").strip().splitlines()[-1:]
    why = "it took too long" if done.timed_out else one_line(last[0], 200) if last else f"exit code {done.code}"
    raise SetupError(f"{Path(argv[0]).name} could not make the GIF: {why}", hint=NEEDED)
