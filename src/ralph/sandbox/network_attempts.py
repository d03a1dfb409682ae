"""Escapes from a sandbox through the network, the proxy and sockets. See `attempts`."""

from __future__ import annotations

from ralph.sandbox.attempts import Attempt, Control, Group

NETWORK = (
    Attempt(
        "tcp-loopback",
        "connect to a service on the machine's loopback",
        Group.NETWORK,
        'connect(socket.AF_INET, ("127.0.0.1", S["port"]))',
    ),
    Attempt(
        "udp-loopback",
        "send UDP to a service of the machine",
        Group.NETWORK,
        'connect(socket.AF_INET, ("127.0.0.1", S["udp_port"]), socket.SOCK_DGRAM)',
    ),
    Attempt(
        "interfaces",
        "find a network interface other than the loopback",
        Group.NETWORK,
        """
        names = [name for _, name in socket.if_nameindex() if name not in ("lo", "tunl0", "sit0", "ip6tnl0")]
        end(0 if names else 10, "interfaces: " + (", ".join(names) or "only lo"))
        """,
    ),
    Attempt(
        "dns",
        "ask a name server directly",
        Group.NETWORK,
        """
        query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\7example\\3com\\0\\0\\1\\0\\1"
        def query_one(server):
            with socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.settimeout(0.5)
                one.connect(tuple(server))
                one.send(query)
                one.recv(1000)
                escaped(server[0])
        each(query_one, *S["name_servers"])
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "resolve",
        "resolve a name without the proxy",
        Group.NETWORK,
        'escaped(str(socket.getaddrinfo(S["name"], 443)[0]))',
        Control.STAND_IN,
    ),
    Attempt(
        "metadata",
        "connect to a cloud's metadata address",
        Group.NETWORK,
        'connect(socket.AF_INET, tuple(S["metadata"]))',
        Control.STAND_IN,
    ),
    Attempt(
        "raw-socket",
        "open a raw socket",
        Group.NETWORK,
        'socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); escaped("opened")',
    ),
    Attempt(
        "packet-socket",
        "listen to packets",
        Group.NETWORK,
        'socket.socket(17, socket.SOCK_RAW, 3 << 8); escaped("opened")',
    ),
    Attempt(
        "vsock",
        "open a socket to the host of a virtual machine",
        Group.NETWORK,
        'socket.socket(40, socket.SOCK_STREAM); escaped("opened")',
    ),
    Attempt(
        "proxy-loopback",
        "reach the machine's loopback through the proxy",
        Group.NETWORK,
        """
        names = ("127.0.0.1", "localhost", "127.1", "0", "0x7f000001", "2130706433", "017700000001", "[::1]",
                 "[::ffff:127.0.0.1]", "0.0.0.0", "localhost.", "LOCALHOST")
        ask(*(f"CONNECT {name}:{S['port']} HTTP/1.1\\r\\n\\r\\n" for name in names))
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "proxy-metadata",
        "reach a cloud's metadata through the proxy",
        Group.NETWORK,
        """
        names = ("169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "2852039166")
        ask(*(f"GET http://{name}/ HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n" for name in names))
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "proxy-unlisted",
        "reach a host that is not on the list",
        Group.NETWORK,
        """
        names = ("example.com", S["listed"] + ".example.com", "x" + S["listed"], "x." + S["listed"])
        ask(*(f"CONNECT {name}:443 HTTP/1.1\\r\\n\\r\\n" for name in names))
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "proxy-port",
        "reach another port of a host on the list",
        Group.NETWORK,
        "ask(*(f\"CONNECT {S['listed']}:{port} HTTP/1.1\\r\\n\\r\\n\" for port in (22, 25, 80)))",
        Control.STAND_IN,
    ),
    Attempt(
        "proxy-smuggling",
        "smuggle another host into a request to the proxy",
        Group.NETWORK,
        """
        good, bad = S["listed"], f"127.0.0.1:{S['port']}"
        ask(
            f"CONNECT {good}:443@{bad} HTTP/1.1\\r\\n\\r\\n",
            f"GET http://{good}@{bad}/ HTTP/1.1\\r\\nHost: {good}\\r\\n\\r\\n",
            f"GET http://{good}:80/ HTTP/1.1\\r\\nHost: {bad}\\r\\n\\r\\n",
            f"GET http://{bad}/ HTTP/1.1\\r\\nHost: {good}\\r\\n\\r\\n",
            f"GET http://{good}#@{bad}/ HTTP/1.1\\r\\n\\r\\n",
            f"GET //{bad}/ HTTP/1.1\\r\\nHost: {bad}\\r\\n\\r\\n",
            f"CONNECT {good}:443 HTTP/1.1\\r\\n\\r\\nCONNECT {bad} HTTP/1.1\\r\\n\\r\\n",
            f"CONNECT {bad}\\t{good}:443 HTTP/1.1\\r\\n\\r\\n",
            f"CONNECT {good}\\0.{bad} HTTP/1.1\\r\\n\\r\\n",
            token=True,
        )
        """,
        Control.STAND_IN,
    ),
)

SOCKETS = (
    Attempt(
        "abstract-socket", "connect to an abstract socket", Group.SOCKETS, 'connect(socket.AF_UNIX, S["abstract"])'
    ),
    Attempt("file-socket", "connect to a socket like Docker's", Group.SOCKETS, 'connect(socket.AF_UNIX, S["socket"])'),
    Attempt(
        "ssh-agent", "connect to the SSH agent", Group.SOCKETS, 'connect(socket.AF_UNIX, os.environ["SSH_AUTH_SOCK"])'
    ),
    Attempt(
        "project-socket",
        "connect to a service of the machine whose socket is in the project",
        Group.SOCKETS,
        'connect(socket.AF_UNIX, S["project_socket"])',
        only=("bwrap", "docker", "podman"),
        why_only="the sockets in a folder that is shared are shared",
    ),
    Attempt(
        "services",
        "connect to Docker, D-Bus, systemd, X11, Wayland or gpg-agent",
        Group.SOCKETS,
        'each(lambda path: connect(socket.AF_UNIX, path), *S["services"])',
        Control.STAND_IN,
    ),
)
