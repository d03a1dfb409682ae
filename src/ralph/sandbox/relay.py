"""Inside a sandbox: `python -I -S relay.py SOCKET PORT [SERVICE…] -- COMMAND…` leads connections to the proxy.

PORT is where programs find the proxy. A connection to a port SERVICE goes through it to that port of the machine.
With a number for SOCKET, the proxy is at that port of the loopback already, and all ports are services.

It listens before the command starts; then this process becomes the command, and one beside it, which is not a child of
the command, forwards until the command has ended. It imports nothing of Ralph: inside, only this file is visible. Every
command in a sandbox waits for it, so until the command runs it imports nothing that takes milliseconds: `_socket` and
`_signal` are what `socket` and `signal` are made of.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket as Socket

_USAGE = "usage: relay.py SOCKET PORT [SERVICE…] -- COMMAND…"
_BACKLOG = 1024
_CHUNK = 65536
_CANNOT_LISTEN = 125
_CANNOT_EXECUTE = 126
_NOT_FOUND = 127
_RETRY_SECONDS = 0.02
_ATTEMPTS = 50


def main(arguments: "list[str]") -> int:
    if "--" not in arguments[2:] or arguments[-1] == "--":
        return _complain(_USAGE, 2)
    at = arguments.index("--")
    path, ports, command = arguments[0], [int(port) for port in arguments[1:at]], arguments[at + 1 :]
    servers = []
    for port in dict.fromkeys(ports):
        try:
            servers.append((_listen(port), port))
        except OSError as error:
            return _complain(f"cannot listen on port {port} inside the sandbox: {error.strerror}", _CANNOT_LISTEN)
    try:
        command_end = os.pidfd_open(os.getpid())  # here, because the command may end before the other process looks
    except (AttributeError, OSError):
        command_end = -1  # then the other process ends with the sandbox
    child = os.fork()
    if child == 0:
        if os.fork() == 0:  # so the command has no child that it does not know
            _forward(path, servers, command_end)
        os._exit(0)
    os.waitpid(child, 0)
    for descriptor, _ in servers:
        os.close(descriptor)
    return _become(command)


def _listen(port: int) -> int:
    """The descriptor of a listening socket. A relay that was there before may need a moment to end."""
    server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    for attempt in range(_ATTEMPTS):
        try:
            server.bind(("127.0.0.1", port))
            server.listen(_BACKLOG)
            break
        except OSError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_RETRY_SECONDS)
    return server.detach()


def _become(command: "list[str]") -> int:
    for number in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so in the command
        if hasattr(_signal, number):
            _signal.signal(getattr(_signal, number), _signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, _environment())
    except FileNotFoundError:
        return _complain(f"{command[0]}: not found", _NOT_FOUND)
    except OSError as error:
        return _complain(f"{command[0]}: {error.strerror}", _CANNOT_EXECUTE)


def _environment() -> "dict[str, str]":
    """As it was: Python sets LC_CTYPE if the locale is C."""
    env = dict(os.environ)
    if "LC_CTYPE" in env:
        try:
            with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
                before = [one for one in file.read().split(b"\0") if one.startswith(b"LC_CTYPE=")]
        except OSError:
            return env
        del env["LC_CTYPE"]
        if before:
            env["LC_CTYPE"] = os.fsdecode(before[0].partition(b"=")[2])
    return env


def _complain(text: str, code: int) -> int:
    os.write(2, f"ralph: {text}\n".encode(errors="replace"))
    return code


def _forward(path: str, servers: "list[tuple[int, int]]", command_end: int) -> None:
    _detach({descriptor for descriptor, _ in servers} | ({command_end} - {-1}))
    try:
        if _is_needed([descriptor for descriptor, _ in servers], command_end):
            Relay(path, servers, command_end).run()
    finally:
        os._exit(0)


def _is_needed(servers: "list[int]", command_end: int) -> bool:
    """Whether a connection comes before the command has ended. Most commands need none, and no time for imports."""
    import select

    poll = select.poll()
    for descriptor in (*servers, command_end):
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    return all(descriptor != command_end for descriptor, _ in poll.poll())


def _detach(kept: "set[int]") -> None:
    """The command's output ends when the command does, not when this does."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, max(first, min(os.sysconf("SC_OPEN_MAX"), 1 << 20)))


class End:
    """One end of a connection. What was read from the other end waits here until it can be written."""

    def __init__(self, stream: "Socket", opening: bytes = b"") -> None:
        self.stream = stream
        self.buffer = bytearray(opening)
        self.other = self
        self.answer = bytearray() if opening else None
        """What the proxy has said so far about a connection to a service; None: nothing is due."""
        self.has_ended = False
        """Nothing more can be read from it."""
        self.was_told = False
        """It knows that nothing more will be written to it."""


class Relay:
    """Forwards in one thread: threads count as processes, of which there is a limit inside."""

    def __init__(self, path: str, servers: "list[tuple[int, int]]", command_end: int) -> None:
        """`command_end` is a descriptor that becomes readable when the command has ended."""
        import selectors
        import socket
        from contextlib import suppress

        self._suppress = suppress
        self._socket = socket.socket
        self._place = ("127.0.0.1", int(path)) if path.isdigit() else path
        self._family = _socket.AF_INET if path.isdigit() else _socket.AF_UNIX
        self._read, self._write = selectors.EVENT_READ, selectors.EVENT_WRITE
        self._selector = selectors.DefaultSelector()
        self._waiting: list[End] = []
        """Ends at the proxy for which it has no room at the moment."""
        self._is_full = False
        self._servers = {}
        for number, (descriptor, port) in enumerate(servers):
            server = socket.socket(fileno=descriptor)
            server.setblocking(False)
            self._servers[server] = (
                f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode() if number or path.isdigit() else b""
            )
            self._selector.register(server, self._read)
        if command_end >= 0:
            self._selector.register(command_end, self._read)

    def run(self) -> None:
        while True:
            timeout = _RETRY_SECONDS if self._waiting or self._is_full else None
            for key, events in self._selector.select(timeout):
                if isinstance(key.data, End):
                    self._turn(key.data, events)
                elif key.fileobj in self._servers:
                    self._accept(key.fileobj)
                else:
                    return  # the command has ended
            waiting, self._waiting = self._waiting, []
            for end in waiting:
                self._connect(end)
            if self._is_full and timeout is not None:
                self._is_full = False
                for server in self._servers:
                    self._selector.register(server, self._read)

    def _accept(self, server: "Socket") -> None:
        for _ in range(64):
            try:
                proxy = self._socket(self._family)
            except OSError:
                self._pause()
                return
            try:
                stream, _address = server.accept()
            except OSError as error:
                proxy.close()
                if not isinstance(error, BlockingIOError):
                    self._pause()
                return
            stream.setblocking(False)
            stream.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            proxy.setblocking(False)
            client, there = End(stream), End(proxy, self._servers[server])
            client.other, there.other = there, client
            self._connect(there)

    def _pause(self) -> None:
        """No descriptor is left: clients wait until a connection is over."""
        if not self._is_full:
            self._is_full = True
            for server in self._servers:
                self._selector.unregister(server)

    def _connect(self, there: End) -> None:
        try:
            there.stream.connect(self._place)
        except BlockingIOError:
            if self._family == _socket.AF_UNIX:  # the proxy's queue is full; otherwise the connection is on its way
                self._waiting.append(there)
                return
        except OSError:
            self._close(there)
            return
        for end in (there, there.other):
            self._selector.register(end.stream, self._read | self._write, end)

    def _turn(self, end: End, events: int) -> None:
        try:
            if events & self._read:
                self._receive(end)
            if events & self._write:
                self._send(end)
            if end.other.buffer:
                self._send(end.other)
            self._tell(end)
            self._tell(end.other)
        except BlockingIOError:
            pass
        except OSError:
            self._close(end)
            return
        if end.was_told and end.other.was_told:
            self._close(end)
            return
        for one in (end, end.other):
            self._watch(one)

    def _receive(self, end: End) -> None:
        if len(end.other.buffer) >= _CHUNK or end.has_ended:
            return
        try:
            data = end.stream.recv(_CHUNK)
        except BlockingIOError:
            return
        if not data:
            end.has_ended = True
        if end.answer is None:
            end.other.buffer += data
            return
        end.answer += data
        head, mark, rest = end.answer.partition(b"\r\n\r\n")
        if mark and head.split(b" ", 2)[1:2] == [b"200"]:
            end.answer = None
            end.other.buffer += rest
        elif mark or end.has_ended or len(end.answer) > _CHUNK:
            raise ConnectionRefusedError

    def _send(self, end: End) -> None:
        if end.buffer:
            with self._suppress(BlockingIOError):
                del end.buffer[: end.stream.send(end.buffer)]

    def _tell(self, end: End) -> None:
        if end.other.has_ended and not end.buffer and not end.was_told:
            end.was_told = True
            end.stream.shutdown(_socket.SHUT_WR)

    def _watch(self, end: End) -> None:
        is_readable = not end.has_ended and len(end.other.buffer) < _CHUNK
        events = (self._read if is_readable else 0) | (self._write if end.buffer else 0)
        watched = self._selector.get_map().get(end.stream)
        if watched is None:
            if events:
                self._selector.register(end.stream, events, end)
        elif not events:
            self._selector.unregister(end.stream)
        elif watched.events != events:
            self._selector.modify(end.stream, events, end)

    def _close(self, end: End) -> None:
        for one in (end, end.other):
            with self._suppress(KeyError, ValueError):
                self._selector.unregister(one.stream)
            one.stream.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
