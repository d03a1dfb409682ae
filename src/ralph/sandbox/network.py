"""The network of a run: one proxy process, and a socket for each list of hosts.

This process holds the listening sockets and hands them to the proxy. If the proxy dies, nothing answers on them, so
there is no network, and a thread starts another one: a sandbox that is running then goes on with the same socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import ralph
from ralph.core.errors import SetupError
from ralph.host.process.attached import AttachedProcess
from ralph.sandbox.decisions import Decision, read_from
from ralph.sandbox.hosts import forwards, parse_hosts
from ralph.sandbox.upstream import proxy_variables

_LONGEST_PATH = 100
"""A path of a unix socket has at most 107 bytes, on macOS 103."""
_BACKLOG = 1024
_RESTARTS = 100
_RESTART_PAUSE = 0.5
_PASSED_ON = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "LOCALDOMAIN", "RES_OPTIONS")
_START = "import sys; sys.path.append(sys.argv[1]); from ralph.sandbox.proxy import main; main()"
"""Appended, so that nothing beside Ralph can stand in for the standard library. `-m` would need `site`."""


class Network:
    """`with Network(…) as network: network.socket("agent")`. Raises ConfigError for a bad list, SetupError."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        lists: Mapping[str, Sequence[str]],
        env: Mapping[str, str],
        *,
        allow_hosts: Sequence[str] | None = None,
    ) -> None:
        """`folder` gets the sockets if its path is short enough for them; otherwise a temporary one does.

        `lists` has the allowed hosts by name (`agent`, `checks`). `env` names the user's own proxy, if there is one.
        `allow_hosts` is the setting as it is; with it, a refusal tells the command that allows the host.
        """
        for entries in lists.values():
            parse_hosts(entries)
        self._parent = folder
        self._log = log
        self._lists = {name: tuple(entries) for name, entries in lists.items()}
        self._env = env
        self._allow_hosts = allow_hosts
        self._offset = 0
        self._folder: Path | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._process: AttachedProcess | None = None
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    def __enter__(self) -> Network:
        self._offset = self._log.stat().st_size if self._log.exists() else 0
        self._over.clear()
        try:
            self._folder = _fresh_folder(self._parent, self._env)
            for number, name in enumerate(self._lists):
                self._sockets[name] = _listen(self._folder / str(number))
            self._process = self._start()
        except BaseException:
            self._clear()
            raise
        self._watch = threading.Thread(target=self._keep_alive, args=(self._process,), name="proxy", daemon=True)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._clear()

    def socket(self, name: str) -> Path:
        assert self._folder is not None, "the network is not started"
        return self._folder / str(list(self._lists).index(name))

    def forwards(self, name: str) -> tuple[int, ...]:
        """Ports of services on this machine's loopback that are on a list."""
        return forwards(self._lists[name])

    def refused(self) -> tuple[Decision, ...]:
        """What was refused since the last call."""
        decisions, self._offset = read_from(self._log, self._offset)
        return tuple(decision for decision in decisions if decision.why)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def pid(self) -> int:
        """The proxy's process."""
        return self._process.pid if self._process is not None else 0

    def _start(self) -> AttachedProcess:
        assert self._folder is not None
        descriptors = {name: server.fileno() for name, server in self._sockets.items()}
        spec = {
            "log": str(self._log.absolute()),
            "sockets": [{"name": n, "fd": descriptors[n], "hosts": hosts} for n, hosts in self._lists.items()],
            "proxies": proxy_variables(self._env),
            "allow_hosts": self._allow_hosts,
            "remove": [*(str(self.socket(name)) for name in self._lists), str(self._folder)],
        }
        root = Path(ralph.__file__).resolve().parent.parent
        return AttachedProcess(
            (sys.executable, "-I", "-S", "-c", _START, str(root)),
            label="the proxy of the sandbox",
            line=json.dumps(spec).encode(),
            env={"HOME": "/"} | {name: self._env[name] for name in _PASSED_ON if name in self._env},
            descriptors=tuple(descriptors.values()),
        )

    def _keep_alive(self, process: AttachedProcess) -> None:
        for _ in range(_RESTARTS):
            process.wait()
            if self._over.is_set():
                return
            process.end(grace=0)
            with contextlib.suppress(SetupError):
                process = self._process = self._start()
            if self._over.wait(_RESTART_PAUSE):
                process.end()
                return

    def _clear(self) -> None:
        if self._process is not None:
            self._process.end()
        if self._watch is not None:
            self._watch.join(timeout=10)
        self._process = self._watch = None
        for server in self._sockets.values():
            server.close()
        self._sockets.clear()
        if self._folder is not None:
            for path in (*(self.socket(name) for name in self._lists), self._folder):
                with contextlib.suppress(OSError):
                    path.rmdir() if path == self._folder else path.unlink()
        self._folder = None


def _fresh_folder(wanted: Path, env: Mapping[str, str]) -> Path:
    """A new folder that only this user can enter, with a path short enough for sockets. Raises SetupError."""
    for parent in (str(wanted.absolute()), env.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):
        if parent.startswith("/") and len(os.fsencode(parent)) < _LONGEST_PATH - len("/ralph-12345678/12"):
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="ralph-", dir=parent))
    raise SetupError("cannot create a folder for the sockets of the sandbox", hint="set TMPDIR to a writable folder")


def _listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(_BACKLOG)
    except OSError as error:
        server.close()
        raise SetupError(f"cannot listen on {path}: {error.strerror}") from None
    return server
