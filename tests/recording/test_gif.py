"""A GIF is made by what is installed, and by nothing from the workspace."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.recording.gif import as_gif
from ralph.recording.storyboard import Size, Storyboard, storyboard
from ralph.recording.theme import Theme
from support.recordings import lying_run


@pytest.fixture
def board(tmp_path: Path) -> Storyboard:
    return storyboard(lying_run(tmp_path, iterations=2), Size(60, 16), 6)


def program(folder: Path, name: str, body: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"


def delays(gif: bytes) -> Iterator[int]:
    """The time of each frame in hundredths of a second, from its graphic control extension."""
    at = gif.find(b"\x21\xf9\x04")
    while at >= 0:
        yield struct.unpack_from("<H", gif, at + 4)[0]
        at = gif.find(b"\x21\xf9\x04", at + 8)


def test_without_a_program_it_says_what_to_install(board: Storyboard, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no program here can make a GIF") as error:
        as_gif(board, Theme.AUTO, {"PATH": str(tmp_path)}, tmp_path / "workspace")
    assert "install agg" in error.value.hint
    assert "ImageMagick" in error.value.hint


def test_agg_gets_the_cast_with_its_colours(board: Storyboard, tmp_path: Path) -> None:
    path = program(
        tmp_path / "bin", "agg", f'cp "$5" {tmp_path}/cast; printf GIF89a > "$6"; echo "$@" > {tmp_path}/args'
    )
    assert as_gif(board, Theme.LIGHT, {"PATH": path}, tmp_path / "workspace") == b"GIF89a"
    assert '"bg": "#ffffff"' in (tmp_path / "cast").read_text()
    assert (tmp_path / "args").read_text().startswith("--idle-time-limit 1000 --last-frame-duration ")


def test_a_program_that_fails_is_named_with_what_it_said(board: Storyboard, tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "agg", "echo 'no faces matching font family' >&2; exit 3")
    with pytest.raises(SetupError, match="agg could not make the GIF: no faces matching font family"):
        as_gif(board, Theme.AUTO, {"PATH": path}, tmp_path / "workspace")


def test_a_program_that_an_agent_put_into_the_workspace_is_not_run(board: Storyboard, tmp_path: Path) -> None:
    folder = tmp_path / "workspace" / "bin"
    folder.mkdir(parents=True)
    program(folder, "agg", f"touch {tmp_path}/was-run")
    with pytest.raises(SetupError):
        as_gif(board, Theme.AUTO, {"PATH": str(folder)}, tmp_path / "workspace")
    assert not (tmp_path / "was-run").exists()


@pytest.mark.needs("rsvg-convert", "identify")
def test_stills_are_put_together_with_the_time_of_each_frame(board: Storyboard, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("rsvg-convert", "magick", "convert"):
        if found := shutil.which(name, path="/usr/bin:/usr/local/bin:/opt/homebrew/bin"):
            (folder / name).symlink_to(found)
    gif = as_gif(board, Theme.AUTO, os.environ | {"PATH": str(folder)}, tmp_path / "workspace")
    assert gif.startswith(b"GIF89a")
    times = list(delays(gif))
    assert len(times) == len(board.frames)
    assert sum(times) == round(board.seconds * 100)
