"""Outside a sandbox: `main([FOLDER, SOCKET, GROUP…, "--", SRT…])` runs srt.

It ends all that srt started. srt that is killed leaves its sandbox behind; so two processes guard each other: this one,
and a fork of it that starts srt. Whichever sees the other or srt end kills what is left, and removes FOLDER. On Linux
both adopt orphans, so that nothing can leave the tree; elsewhere the process group of srt is killed. GROUP is a file of
a control group, to enter it.

A port of the loopback leads to the proxy at SOCKET, and srt is told to use that port; if SOCKET is empty, it leads
nowhere. Connections of other users are refused where the system tells whose they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from socket import socket as Socket

from ralph.host.loopback import is_own
from ralph.host.process.table import own_children
from ralph.host.process.tree import adopt_orphans

_CHUNK = 65536
_LONGEST_KILL = 5.0
_NAMES = ("SIGTERM", "SIGINT", "SIGHUP")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))  # Windows has no SIGHUP


def main(arguments: Sequence[str]) -> int:
    at = arguments.index("--")
    (folder, path, *groups), command = arguments[:at], arguments[at + 1 :]
    for group in groups:
        with contextlib.suppress(OSError):
            Path(group).write_text("0", encoding="ascii")
    received: list[int] = []
    guard = 0

    def forward(number: int, _frame: object) -> None:
        received.append(number)
        if guard:
            _send(guard, number)

    for number in _SIGNALS:
        signal.signal(number, forward)
    adopt_orphans()
    lifeline, own_end = os.pipe()
    guard = os.fork()
    if guard == 0:
        os.close(own_end)
        os._exit(_guard(folder, path, command, lifeline))
    os.close(lifeline)
    _drop_streams()
    code = _wait(guard)
    _kill_children()
    _remove(folder)
    return 128 + received[0] if received else code  # srt that gets SIGTERM reports success


def _guard(folder: str, path: str, command: Sequence[str], lifeline: int) -> int:
    child = 0

    def forward(number: int, _frame: object) -> None:
        if child:
            _send(child, number)

    def watch() -> None:
        os.read(lifeline, 1)  # nothing is ever written: it returns when the other process is gone
        _kill_children(child)
        _remove(folder)
        os._exit(128 + signal.SIGKILL)

    for number in _SIGNALS:
        signal.signal(number, forward)
    adopt_orphans()
    servers = _listen()
    _use_port(Path(folder, "settings.json"), servers[0].getsockname()[1])
    child = os.fork()
    if child == 0:
        _become(command)
    _drop_streams()
    threading.Thread(target=watch, daemon=True).start()
    for server in servers:
        threading.Thread(target=_accept, args=(server, path), daemon=True).start()
    code = _wait(child)
    _kill_children(child)
    _remove(folder)
    return code


def _become(command: Sequence[str]) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if not os.isatty(0):  # there, only the foreground group may read
        os.setpgid(0, 0)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(2, f"could not start {command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _wait(pid: int) -> int:
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # killed and reaped by the other thread
        status = -signal.SIGKILL
    return status if status >= 0 else 128 - status


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _drop_streams() -> None:
    """The command's output ends when the command does, not when this does."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _kill_children(group: int = 0) -> None:
    """Until none is left: the children of one that is killed become ours."""
    if group:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + _LONGEST_KILL
    while time.monotonic() < deadline:
        for pid in own_children():
            _send(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)
        except ChildProcessError:
            return


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _use_port(settings: Path, port: int) -> None:
    values = json.loads(settings.read_bytes())
    values["network"].update(httpProxyPort=port, socksProxyPort=port)
    settings.write_text(json.dumps(values), encoding="utf-8")


def _listen() -> list[Socket]:
    server = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = server.getsockname()[1]
    try:
        return [server, socket.create_server(("::1", port), family=socket.AF_INET6, backlog=128)]
    except OSError:  # `localhost` is the first one then
        return [server]


def _accept(server: Socket, path: str) -> None:
    port = server.getsockname()[1]
    while True:
        client, address = server.accept()
        if path and is_own(address[1], port):
            threading.Thread(target=_serve, args=(client, path), daemon=True).start()
        else:
            client.close()


def _serve(client: Socket, path: str) -> None:
    try:
        proxy = socket.socket(socket.AF_UNIX)
        proxy.connect(path)
    except OSError:
        client.close()
        return
    back = threading.Thread(target=_copy, args=(proxy, client), daemon=True)
    back.start()
    _copy(client, proxy)
    back.join()
    client.close()
    proxy.close()


def _copy(source: Socket, sink: Socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
