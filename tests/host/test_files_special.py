from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ralph.host.files import NotRegular, open_regular, read_state, write_bytes


def test_only_regular_files_are_opened_read_and_replaced(tmp_path: Path) -> None:
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(fifo)
    for path in (fifo, folder, link):
        for act in (open_regular, read_state, lambda path: write_bytes(path, b"x")):
            with pytest.raises(NotRegular, match="not a regular file"):
                act(path)
    with pytest.raises(NotRegular):
        open_regular(fifo, os.O_WRONLY | os.O_APPEND)
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_behind_a_link_is_never_replaced(tmp_path: Path) -> None:
    device, link = tmp_path / "device", tmp_path / "state.json"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    link.symlink_to(device)
    with pytest.raises(NotRegular):
        write_bytes(link, b"x")
    assert stat.S_ISCHR(device.lstat().st_mode)


def test_an_enormous_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(200 * 1024**3)
    with pytest.raises(OSError, match="larger than"):
        read_state(path)
