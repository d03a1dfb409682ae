"""Run as a program: `pretend_macos.py ARGUMENTS…`, which are those of `ralph`.

Ralph takes its branches for macOS: processes are found by `ps`. Whatever opens something below /proc finds nothing, as
there. The standard library was imported before that: it chooses its own code by the system it is on.
"""

from __future__ import annotations

import asyncio
import ctypes.util
import multiprocessing
import platform
import selectors
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from typing import Any

import minijinja
import msgspec
import yaml

LOADED = (asyncio, ctypes.util, multiprocessing, platform, selectors, shutil, socket, subprocess, tempfile, threading,
          minijinja, msgspec, yaml)  # fmt: skip
LOOKS = {"open", "os.listdir", "os.scandir"}


def no_proc(event: str, arguments: tuple[Any, ...]) -> None:
    if event in LOOKS and arguments and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))


def main() -> int:
    sysconfig.get_config_vars()  # reads a file that is named after the system
    sys.platform = "darwin"
    sys.addaudithook(no_proc)
    from ralph.cli.main import main as ralph

    code = ralph(sys.argv[1:])
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
