"""Run as a program: `pretend_windows.py import`, or `pretend_windows.py ralph ARGUMENTS…`.

Takes away what Windows does not have before any of Ralph is imported. The standard library and the packages of the
extras were imported before that: they choose their own code by the system they are on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import glob
import importlib
import importlib.metadata
import importlib.resources
import os
import pkgutil
import platform
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import zoneinfo
from types import ModuleType
from typing import Any

import minijinja
import msgspec
import opentelemetry.sdk.trace
import starlette.applications
import textual.app
import uvicorn
import yaml

LOADED = (asyncio, concurrent.futures, glob, importlib.metadata, importlib.resources, platform, selectors, shutil,
          socket, subprocess, tempfile, threading, zoneinfo, minijinja, msgspec, yaml,
          opentelemetry, starlette, textual, uvicorn)  # fmt: skip
MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
OF_OS = """
O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK chown fchmod fchown forkpty getegid geteuid getgid getloadavg
getpgid getpgrp getpriority getsid getuid killpg lchown mkfifo mknod openpty posix_spawn posix_spawnp register_at_fork
sched_getaffinity setpgid setpriority setsid uname wait3 wait4 waitid
"""
OF_SIGNAL = "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGWINCH pthread_sigmask"


class Missing:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def pretend() -> None:
    sysconfig.get_config_vars()  # reads a file that is named after the system
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    locking: Any = ModuleType("msvcrt")
    locking.LK_NBLCK, locking.LK_UNLCK, locking.locking = 2, 0, lambda descriptor, mode, size: None
    sys.modules["msvcrt"] = locking
    sys.platform = "win32"


def import_everything() -> int:
    import ralph

    for found in pkgutil.walk_packages(ralph.__path__, "ralph."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    return 0


def call(arguments: list[str]) -> int:
    from ralph.cli.main import main

    code = main(arguments)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    pretend()
    sys.exit(import_everything() if sys.argv[1] == "import" else call(sys.argv[2:]))
