"""Inside a sandbox: `python -I -S relay.py SOCKET PORT [SERVICE…] -- COMMAND…` leads connections to the proxy.

PORT is where programs find the proxy. A connection to a port SERVICE goes through it to that port of the machine.
With a number for SOCKET, the proxy is at that port of the loopback already, and all ports are services.

It listens before the command starts, and stays behind when this process becomes the command. It imports nothing of
Ralph: inside, only this file is visible.
"""

import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket as Socket

_CHUNK = 65536


def main(arguments: "list[str]") -> None:
    at = arguments.index("--")
    path, ports, command = arguments[0], arguments[1:at], arguments[at + 1 :]
    servers = [socket.create_server(("127.0.0.1", int(port)), backlog=128) for port in ports]
    if os.fork() == 0:
        _detach()
        for number, server in enumerate(servers):
            is_service = number > 0 or path.isdigit()
            opening = f"CONNECT 127.0.0.1:{ports[number]} HTTP/1.1\r\n\r\n".encode() if is_service else b""
            threading.Thread(target=_accept, args=(server, path, opening)).start()
        return
    for server in servers:
        server.close()
    os.execvp(command[0], command)


def _accept(server: "Socket", path: str, opening: bytes) -> None:
    while True:
        client, _ = server.accept()
        threading.Thread(target=_serve, args=(client, path, opening), daemon=True).start()


def _detach() -> None:
    """The command's output ends when the command does, not when this does."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _serve(client: "Socket", path: str, opening: bytes) -> None:
    try:
        proxy = _connect(path)
        if opening:
            proxy.sendall(opening)
            _read_answer(proxy)
    except OSError:
        client.close()
        return
    back = threading.Thread(target=_copy, args=(proxy, client), daemon=True)
    back.start()
    _copy(client, proxy)
    back.join()
    client.close()
    proxy.close()


def _connect(path: str) -> "Socket":
    if path.isdigit():
        return socket.create_connection(("127.0.0.1", int(path)))
    proxy = socket.socket(socket.AF_UNIX)
    proxy.connect(path)
    return proxy


def _read_answer(proxy: "Socket") -> None:
    """Raises OSError if the proxy refuses."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = proxy.recv(1)
        if not byte:
            raise OSError
        answer += byte
    if b" 200 " not in answer.split(b"\r\n", 1)[0] + b" ":
        raise OSError


def _copy(source: "Socket", sink: "Socket") -> None:
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
