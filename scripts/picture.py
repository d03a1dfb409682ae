"""Makes docs/demo.svg: the run of `scripts/demo --plain` up to its summary, as a terminal would show it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 112


def main() -> None:
    text = recorded([sys.executable, str(ROOT / "scripts" / "demo_loop.py"), "--plain"])
    start = text.index("$ ralph run")
    end = text.index("$ git log")
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="standard")
        for line in text[start - 4 : end - 4].rstrip().splitlines():
            console.print(
                Text.from_ansi(re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b", "20260115-213000-5eed", line)), no_wrap=True
            )
    svg = console.export_svg(title="scripts/demo", unique_id="ralph-demo")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # it would be fetched from elsewhere
    target = ROOT / "docs" / "demo.svg"
    target.write_text(svg)
    sys.stdout.write(f"{target}\n")


def recorded(command: list[str]) -> str:
    """What a program prints on a terminal."""
    ours, theirs = pty.openpty()
    env = os.environ | {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    chunks: list[bytes] = []
    with contextlib.suppress(OSError):  # how a terminal tells that nobody writes to it any more
        while data := os.read(ours, 65536):
            chunks.append(data)
    os.close(ours)
    process.wait()
    return b"".join(chunks).decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
