"""Inside a sandbox: `python -I relay.py PORT SOCKET COMMAND…` passes connections to PORT on to the proxy's socket.

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
    port, path, *command = arguments
    server = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    if os.fork() == 0:
        _detach()
        while True:
            client, _ = server.accept()
            threading.Thread(target=_serve, args=(client, path), daemon=True).start()
    server.close()
    os.execvp(command[0], command)


def _detach() -> None:
    """The command's output ends when the command does, not when this does."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _serve(client: "Socket", path: str) -> None:
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


def _copy(source: "Socket", sink: "Socket") -> None:
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
