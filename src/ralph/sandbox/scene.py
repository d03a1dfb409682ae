"""A small world for escapes from a sandbox to reach for: a home folder with secrets, a checkout, services, a process.

It is all temporary, and `changes` says what an attempt did to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ralph.host.process.enclosure import Process
from ralph.host.process.start import finish, run, start
from ralph.sandbox import seccomp
from ralph.sandbox.network import Network
from ralph.sandbox.wall import PROXY_PORT, Quota, Wall

LISTED = "allowed.example"
"""The only host that the proxy's list has; it does not exist."""
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SECRET_FILES = (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".claude/.credentials.json")
_STARTUP_FILES = (".bashrc", ".profile", ".gitconfig", ".claude/settings.json", ".config/autostart/x.desktop")
_SYSTEM_FOLDERS = ("/", "/etc", "/usr", "/usr/local/bin", "/opt", "/var/lib", "/boot", "/srv")
_SERVICES = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/stdout",
    "/run/snapd.socket",
    "/run/cups/cups.sock",
    "/tmp/.X11-unix/X0",
    "\0/tmp/.X11-unix/X0",
    "/run/user/{uid}/bus",
    "/run/user/{uid}/gnupg/S.gpg-agent",
    "/run/user/{uid}/wayland-0",
    "/run/WSL/1_interop",
)


class Scene:
    def __init__(self, base: Path | None = None) -> None:
        self.token = secrets.token_hex(8)
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="ralph-", dir=base)))
        self.home = self.folder / "home"
        self.other_home = self.folder / "other-home"
        self.outside = self.home / "other-project"
        self.checkout = self.home / "project"
        self.loop_files = self.home / ".state"  # short: the path of a socket has at most 107 bytes
        self.clone = self.loop_files / "clone"
        self.inner_home = self.loop_files / "inner-home"
        self.log = self.loop_files / "proxy.log"
        self._network: Network | None = None
        self._contacts: dict[str, int] = {}
        self._open: list[socket.socket] = []
        self._processes: list[Process] = []
        self._more: list[Path] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wall(self, quota: Quota, readable: tuple[Path, ...] = ()) -> Wall:
        if self._network is None:
            self._network = Network(self.loop_files, self.log, {"agent": (LISTED,)}, {})
            self._network.__enter__()
        return Wall(
            home=self.home,
            home_source=self.inner_home,
            writable=(self.clone,),
            readable=readable,
            hidden=(self.other_home,),
            proxy=self._network.socket("agent"),
            hosts=(LISTED,),
            quota=quota,
        )

    def facts(self, *, is_control: bool = False) -> dict[str, Any]:
        """What an attempt knows about the world outside. In a control run without a sandbox, harmless stand-ins take
        the place of what must not be tried for real."""
        architecture = seccomp.ARCHITECTURES.get(platform.machine())
        services = [path.format(uid=os.getuid()) for path in _SERVICES]
        facts: dict[str, Any] = {
            "token": self.token,
            "home": str(self.home),
            "secret_files": [str(self.home / name) for name in _SECRET_FILES],
            "startup_files": [str(self.home / name) for name in _STARTUP_FILES],
            "outside": str(self.outside),
            "checkout": str(self.checkout),
            "state": str(self.loop_files),
            "clone": str(self.clone),
            "log": str(self.log),
            "other_home": str(self.other_home),
            "temporary": str(self._more[0]),
            "shared": str(self._more[-1]),
            "pid": self._processes[0].pid,
            "processes": "/proc/[0-9]*",
            "sleep": self._sleep,
            "port": self._port,
            "udp_port": self._udp_port,
            "abstract": self._abstract,
            "socket": str(self.outside / "docker.sock"),
            "agent": str(self.outside / "agent.sock"),
            "project_socket": str(self.clone / "service.sock"),
            "namespaces": namespaces(),
            "calls": {**architecture.refused, **architecture.looked_at} if architecture else {},
            "proxy": ["127.0.0.1", PROXY_PORT],
            "listed": LISTED,
            "name": "example.com",
            "name_servers": [["1.1.1.1", 53], *([server, 53] for server in _name_servers())],
            "metadata": ["169.254.169.254", 80],
            "system_folders": list(_SYSTEM_FOLDERS),
            "services": services,
            "shadow": ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"],
            "spools": ["/var/spool/cron", "/var/spool/cron/crontabs", "/etc/cron.d", "/var/spool/at"],
        }
        if is_control:
            stand_in = str(self.outside)
            facts |= {"system_folders": [stand_in], "spools": [stand_in], "services": [facts["socket"]]}
            facts |= {"proxy": ["127.0.0.1", self._open_proxy], "shadow": [str(self.outside / "file")]}
            facts |= {"processes": f"/proc/{self._processes[0].pid}", "name": "localhost"}
            facts |= {"name_servers": [["127.0.0.1", self._udp_port]], "metadata": ["127.0.0.1", self._port]}
        return facts

    def changes(self) -> list[str]:
        """What is not as it was."""
        names = [f"{kind} was reached" for kind, count in self._contacts.items() if count]
        after = dict(self._contents())
        names += [f"{path} was changed" for path, text in self._before.items() if after.get(path) != text]
        names += [f"{path} was created" for path in after if path not in self._before]
        if not self.log.read_bytes().startswith(self._log_start) or b"forged" in self.log.read_bytes():
            names.append("the proxy's log was changed")
        if any(process.poll() is not None for process in self._processes[:1]):
            names.append("a process was ended")
        for path in self.clone.glob("*"):
            with contextlib.suppress(OSError):
                if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID) and path.is_file():
                    names.append(f"{path.name} has the set-user-ID bit")
        if self._beats():
            names.append("a process outlived the sandbox")
        return names

    def close(self) -> None:
        if self._network is not None:
            self._network.__exit__()
        for pid in self._heart():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.kill()
            finish(process)
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for path in self._more:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build(self) -> None:
        for folder in (self.other_home, self.outside, self.checkout, self.clone, self.inner_home):
            folder.mkdir(parents=True)
        for name in (*_SECRET_FILES, *_STARTUP_FILES):
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# {self.token}\n")
        for file in (self.outside / "file", self.other_home / "diary", self.loop_files / "journal"):
            file.write_text(self.token)
        for place in (tempfile.gettempdir(), "/dev/shm"):
            if Path(place).is_dir():
                self._more.append(Path(place) / f"ralph-escape-{self.token}")
                self._more[-1].write_text(self.token)
        self._repositories()
        self._sleep = str(70_000 + secrets.randbelow(10_000))
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home), "RALPH_CANARY": self.token}
        self._processes.append(start(("sleep", self._sleep), cwd=Path("/"), env=env, stdin=False))
        self._services()
        self.log.write_text('{"t": 0, "host": "first.example"}\n')
        self._log_start = self.log.read_bytes()
        self._before = dict(self._contents())

    def _repositories(self) -> None:
        def git(folder: Path, *arguments: str) -> None:
            names = {
                f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
            }
            nowhere = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.folder)}
            env = {"PATH": os.environ.get("PATH", os.defpath), **names, **nowhere}
            run(("git", *arguments), cwd=folder, env=env)

        git(self.checkout, "init", "-q", "--template=", "-b", "main")
        (self.checkout / ".git" / "hooks").mkdir(exist_ok=True)
        (self.checkout / ".gitignore").write_text(".env\n")
        (self.checkout / ".env").write_text(self.token)
        git(self.checkout, "add", ".gitignore")
        git(self.checkout, "commit", "-qm", "First")
        shutil.copytree(self.checkout / ".git", self.clone / ".git")
        (self.checkout / "secret.txt").write_text(self.token)
        git(self.checkout, "add", "-f", "secret.txt")
        git(self.checkout, "commit", "-qm", "Second, which only the user has")

    def _services(self) -> None:
        loopback = ("127.0.0.1", 0)
        self._port = self._serve("the TCP service", socket.AF_INET, loopback)[1]
        self._udp_port = self._serve("the UDP service", socket.AF_INET, loopback, socket.SOCK_DGRAM)[1]
        self._open_proxy = self._serve("", socket.AF_INET, loopback)[1]
        self._abstract = f"\0ralph-escape-{self.token}"
        self._serve("the abstract socket", socket.AF_UNIX, self._abstract)
        for folder, name in ((self.outside, "docker"), (self.outside, "agent"), (self.clone, "service")):
            self._serve(f"the socket {name}.sock", socket.AF_UNIX, str(folder / f"{name}.sock"))

    def _serve(self, name: str, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Any:
        """A service that answers everyone with the token, and counts."""
        server = socket.socket(family, kind)
        self._open.append(server)
        server.bind(address)
        answer = b"HTTP/1.1 200 OK\r\n\r\n" + self.token.encode()

        def note() -> None:
            if name:
                self._contacts[name] = self._contacts.get(name, 0) + 1

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    if kind == socket.SOCK_DGRAM:
                        _, sender = server.recvfrom(1000)
                        if sender is None:
                            return  # closed
                        note()
                        server.sendto(answer, sender)
                        continue
                    client, _ = server.accept()
                    note()
                    with client, contextlib.suppress(OSError):
                        client.sendall(answer)

        if kind == socket.SOCK_STREAM:
            server.listen()
        threading.Thread(target=accept, daemon=True).start()
        return server.getsockname()

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file that nothing inside may change; `clone` and `inner_home` are for what is inside."""
        for folder, folders, files in os.walk(self.folder):
            place = Path(folder)
            folders[:] = [name for name in folders if place / name not in (self.clone, self.inner_home)]
            for name in files:
                path = place / name
                if path != self.log and not path.is_socket():
                    yield str(path.relative_to(self.folder)), _content(path)
        for path in self._more:
            yield str(path), _content(path)

    def _heart(self) -> list[int]:
        """The process that an attempt left behind, as it sees itself; only a bare one has the number that we see."""
        try:
            return [int((self.clone / "bare-daemon").read_text())]
        except (OSError, ValueError):
            return []

    def _beats(self) -> bool:
        """Whether the daemon of an attempt still writes."""
        beat = self.clone / "beat"
        if not beat.exists():
            return False
        size = beat.stat().st_size
        time.sleep(0.15)
        is_alive = beat.stat().st_size != size
        if not is_alive:
            beat.unlink()
        return is_alive


def _name_servers() -> list[str]:
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        return []
    return [line.split()[1] for line in lines if line.startswith("nameserver ")]


def namespaces() -> dict[str, str]:
    spaces = {}
    for name in _NAMESPACES:
        with contextlib.suppress(OSError):
            spaces[name] = str(Path(f"/proc/self/ns/{name}").readlink())
    return spaces


def environment(facts: Mapping[str, Any], scene: Scene) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    agent = str(scene.outside / "agent.sock")
    return {
        "PATH": path,
        "HOME": str(scene.home),
        "SCENE": json.dumps(facts),
        "SSH_AUTH_SOCK": agent,
        "LANG": "C.UTF-8",
    }


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() + str(path.lstat().st_mode).encode()
    except OSError:
        return b""
