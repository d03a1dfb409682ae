"""The real sandbox runtime: what a command inside sees, and that nothing of it outlives its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.process.enclosure import Start
from ralph.host.process.start import Finished, finish, run, start
from ralph.host.process.table import table
from ralph.sandbox import srt
from ralph.sandbox.attempts import Group
from ralph.sandbox.escapes import Result, try_escapes, try_work
from ralph.sandbox.network import Network
from ralph.sandbox.wall import Mount, Quota, Wall, Walled
from support.tools import OTHER_CLIENTS

needs_srt = [
    pytest.mark.needs("srt", "bwrap", "socat", "rg"),
    pytest.mark.skipif(sys.platform != "linux", reason="sees processes through /proc"),
]
LABEL = "ralph-0123456789ab"


@pytest.fixture(autouse=True)
def _on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{OTHER_CLIENTS}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def folders(tmp_path: Path) -> Wall:
    for name in ("project", "private", "person", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "person" / "key").write_text("secret")
    return Wall(home=tmp_path / "person", home_source=tmp_path / "private", writable=(tmp_path / "project",))


def inside(wall: Wall, *argv: str, stdin: bytes = b"", **env: str) -> Finished:
    program = srt.find(os.environ).program
    variables = {"PATH": os.environ["PATH"], **env}
    return run(argv, cwd=wall.writable[0], env=variables, stdin=stdin, enclosure=Walled(srt, program, wall))


def processes_with(text: str) -> list[int]:
    found = []
    for pid in table():
        try:
            if text.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def until(done: Callable[[], object], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if done():
            return True
        time.sleep(0.02)
    return False


class TestFind:
    def test_it_says_how_to_install_it(self, tmp_path: Path) -> None:
        found = srt.find({"PATH": str(tmp_path)})
        assert found.why_not == "srt is not installed"
        assert found.hint == "npm install -g @anthropic-ai/sandbox-runtime"

    @pytest.mark.parametrize(
        ("version", "why_not"), [("0.0.77", "srt 0.0.77 is older than 0.0.78"), ("0.1.0", "srt needs ")]
    )
    def test_it_names_what_is_missing(self, tmp_path: Path, version: str, why_not: str) -> None:
        install(tmp_path, {"name": "@anthropic-ai/sandbox-runtime", "version": version})
        assert srt.find({"PATH": str(tmp_path / "bin")}).why_not.startswith(why_not)

    def test_another_program_of_that_name_is_refused(self, tmp_path: Path) -> None:
        install(tmp_path, {"name": "subtitles", "version": "4.0.0"})
        assert "is not @anthropic-ai/sandbox-runtime" in srt.find({"PATH": str(tmp_path / "bin")}).why_not

    @pytest.mark.needs("srt", "bwrap", "socat", "rg", "node")
    def test_it_is_found(self) -> None:
        found = srt.find(os.environ)
        assert not found.why_not
        assert found.version.count(".") == 2


def install(folder: Path, package: dict[str, str]) -> None:
    (folder / "lib" / "dist").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "lib" / "package.json").write_text(json.dumps(package))
    (folder / "lib" / "dist" / "cli.js").write_text("#!/usr/bin/env node\n")
    (folder / "lib" / "dist" / "cli.js").chmod(0o755)
    (folder / "bin" / "srt").symlink_to("../lib/dist/cli.js")


class TestEnter:
    """What is started outside, where the command inside must have no say."""

    @pytest.fixture(autouse=True)
    def _clean(self) -> Iterator[None]:
        yield
        srt.end("srt", LABEL)

    def enter(self, wall: Wall, **env: str) -> Start:
        return srt.enter("/opt/srt/dist/cli.js", Start(("make", "it"), wall.writable[0], env), wall, LABEL)

    def settings(self) -> dict[str, dict[str, list[str]]]:
        settings: dict[str, dict[str, list[str]]] = json.loads((self.folder / "settings.json").read_bytes())
        return settings

    @property
    def folder(self) -> Path:
        return Path(os.path.realpath(tempfile.gettempdir()), LABEL)

    def test_the_environment_of_the_command_stays_inside(self, folders: Wall) -> None:
        begun = self.enter(folders, NODE_OPTIONS="--require evil", TOKEN="s3cret", RALPH_RUN="7", LD_PRELOAD="x.so")
        assert begun.env["RALPH_RUN"] == "7"
        assert not {"NODE_OPTIONS", "TOKEN", "LD_PRELOAD"} & set(begun.env)
        assert "s3cret" not in " ".join(begun.argv)
        assert (self.folder / "start.json").stat().st_mode & 0o777 == 0o600
        assert self.folder.stat().st_mode & 0o777 == 0o700

    def test_no_helper_is_looked_up_in_a_writable_folder(
        self, folders: Wall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "project")
        own = [tmp_path / "project" / "bin", tmp_path / "link" / "bin", tmp_path / "private", "bin", ""]
        monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", *map(str, own), "/bin"]))
        assert self.enter(folders).env["PATH"] == "/usr/bin:/bin"

    def test_only_what_exists_is_named(self, folders: Wall, tmp_path: Path) -> None:
        wall = Wall(home=folders.home, writable=folders.writable, read_only=(tmp_path / "no", tmp_path / "elsewhere"))
        self.enter(wall)
        assert self.settings()["filesystem"]["denyWrite"] == [str(tmp_path / "elsewhere")]

    def test_a_path_that_srt_takes_for_a_pattern(self, folders: Wall, tmp_path: Path) -> None:
        (tmp_path / "a[1]").mkdir()
        with pytest.raises(SetupError, match=r"cannot make .*a\[1\] writable"):
            self.enter(Wall(home=folders.home, writable=(tmp_path / "a[1]",)))

    def test_what_srt_cannot_do(self, folders: Wall) -> None:
        with pytest.raises(SetupError, match="cannot open the network"):
            self.enter(Wall(home=folders.home, writable=folders.writable, is_network_open=True))
        with pytest.raises(SetupError, match="at other paths"):
            self.enter(Wall(home=folders.home, writable=folders.writable, mounts=(Mount(Path("/a"), Path("/b")),)))
        self.enter(Wall(home=folders.home, writable=folders.writable, mounts=(Mount(Path("/a"), Path("/a")),)))


class TestInside:
    pytestmark = needs_srt

    def test_a_command_runs_as_if_it_were_outside(self, folders: Wall) -> None:
        words = ("a b", "$HOME", "it's", "*", "", "--", "-x", "é\n")
        script = "import os, sys; print(os.getcwd(), os.environ['TOKEN'], sys.argv[1:], sys.stdin.read())"
        ended = inside(folders, sys.executable, "-c", script, *words, stdin=b"input", TOKEN="s3cret")
        assert ended.out.decode() == f"{folders.writable[0]} s3cret {list(words)!r} input\n"
        assert (ended.code, ended.err, ended.swept, ended.problem) == (0, b"", 0, "")

    def test_exit_codes_and_streams(self, folders: Wall) -> None:
        ended = inside(folders, "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (ended.code, ended.out, ended.err) == (7, b"out\n", b"err\n")
        assert inside(folders, "sh", "-c", "kill -9 $$").code == 128 + 9
        missing = inside(folders, "no-such-program")
        assert missing.code == 127
        assert b"could not start no-such-program" in missing.err

    def test_the_home_is_private_and_the_rest_read_only(self, folders: Wall, tmp_path: Path) -> None:
        script = f"""
            test "$HOME" = {tmp_path}/private && echo login > ~/.state && echo work > made && echo home
            cat {tmp_path}/person/key; ls -A {tmp_path}/person
            for place in {tmp_path}/elsewhere /etc /usr; do touch $place/x && echo wrote $place; done
            touch /tmp/x $TMPDIR/y && echo temporary
        """
        ended = inside(folders, "sh", "-c", script)
        assert ended.out == b"home\ntemporary\n"
        assert (tmp_path / "private" / ".state").read_text() == "login\n"
        assert (tmp_path / "project" / "made").read_text() == "work\n"
        assert not list((tmp_path / "elsewhere").iterdir())

    def test_readable_and_read_only_folders(self, folders: Wall, tmp_path: Path) -> None:
        (tmp_path / "person" / "tool").mkdir()
        (tmp_path / "person" / "tool" / "run").write_text("#!/bin/sh\necho tool\n")
        (tmp_path / "person" / "tool" / "run").chmod(0o755)
        (tmp_path / "project" / "kept").mkdir()
        (tmp_path / "elsewhere" / "x").write_text("hidden")
        wall = Wall(
            home=folders.home,
            writable=folders.writable,
            readable=(tmp_path / "person" / "tool",),
            read_only=(tmp_path / "project" / "kept",),
            hidden=(tmp_path / "elsewhere",),
        )
        script = f"{tmp_path}/person/tool/run; touch kept/x && echo kept; cat {tmp_path}/elsewhere/x; echo ~; touch ~/x"
        ended = inside(wall, "sh", "-c", script)
        out = ended.out.decode().split()
        assert out[0] == "tool"
        assert len(out) == 2  # the home is an empty folder of this process alone
        assert not Path(out[1]).exists()

    def test_git_sees_no_files_of_srt(self, folders: Wall) -> None:
        script = (
            "git init -q && echo 1 > a && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm a && ls -A"
        )
        ended = inside(folders, "sh", "-c", script)
        assert (ended.code, ended.out) == (0, b".git\na\n")
        assert sorted(p.name for p in folders.writable[0].iterdir()) == [".git", "a"]

    def test_no_privileges_are_left(self, folders: Wall) -> None:
        """As root too: srt by itself leaves it all capabilities in its namespace, and a writable /proc/sys."""
        status = inside(folders, "cat", "/proc/self/status").out.decode()
        fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
        assert {fields[name].strip("0") for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {""}
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
        assert b"not permitted" in inside(folders, "unshare", "--user", "true").err
        opening = "import os; os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)"
        assert (
            inside(folders, sys.executable, "-c", opening).err.splitlines()[-1].startswith((b"OSError", b"PermissionE"))
        )

    def test_limits(self, folders: Wall) -> None:
        wall = Wall(home=folders.home, writable=folders.writable, quota=Quota(disk_mb=1, cpu_seconds=1))
        assert inside(wall, "dd", "if=/dev/zero", "of=big", "bs=1M", "count=3").code != 0
        assert (folders.writable[0] / "big").stat().st_size <= 1024 * 1024
        assert inside(wall, "sh", "-c", "while :; do :; done").code >= 128

    def test_no_trace_is_left(self, folders: Wall) -> None:
        ended = inside(folders, "sh", "-c", "cat /proc/self/mountinfo; sleep 300 & setsid sleep 300 & echo done")
        assert ended.out.endswith(b"done\n")
        folder = re.search(r" (/\S*/ralph-[0-9a-f]{12})[/ ]", ended.out.decode())
        assert folder
        assert not Path(folder[1]).exists()
        assert ended.swept == 0  # all of it ended by itself


class TestNetwork:
    pytestmark = needs_srt

    def test_nothing_is_reached_without_a_proxy(self, folders: Wall, service: int) -> None:
        ended = inside(folders, sys.executable, "-c", fetch(f"http://127.0.0.1:{service}/"))
        assert ended.out == b"no: URLError\n"
        assert inside(folders, sys.executable, "-c", fetch("http://example.org/")).out.startswith(b"no: ")

    def test_every_request_goes_to_the_proxy(self, folders: Wall, tmp_path: Path) -> None:
        log = tmp_path / "log"
        with proxy(tmp_path, log, "example.org") as path:
            wall = Wall(home=folders.home, writable=folders.writable, proxy=path)
            ended = inside(wall, sys.executable, "-c", fetch("http://denied.test/"))
        assert ended.out == b"no: HTTPError 403\n"
        record = json.loads(log.read_text())
        assert (record["host"], record["refused"]) == ("denied.test", "the host is not on the list")

    def test_a_service_of_this_machine_is_at_its_port(self, folders: Wall, service: int, tmp_path: Path) -> None:
        with proxy(tmp_path, tmp_path / "log", f"localhost:{service}") as path:
            wall = Wall(home=folders.home, writable=folders.writable, proxy=path, forwards=(service,))
            ended = inside(wall, sys.executable, "-c", fetch(f"http://127.0.0.1:{service}/"))
        assert ended.out == b"hello\n"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
    def test_another_user_cannot_use_the_port(self, folders: Wall, tmp_path: Path) -> None:
        log = tmp_path / "log"
        ask = (
            "import os, socket; os.setuid(int(os.environ['AS'])); s = socket.socket();"
            "s.connect(('127.0.0.1', int(os.environ['PORT'])));"
            "s.sendall(b'GET http://denied.test/ HTTP/1.1\\r\\n\\r\\n'); print(s.recv(8))"
        )

        def request(user: int) -> bytes:
            env = {**os.environ, "PORT": port.read_text().strip(), "AS": str(user)}
            done = subprocess.run([sys.executable, "-c", ask], check=False, env=env, capture_output=True, timeout=20)
            return done.stdout + done.stderr

        with proxy(tmp_path, log, "example.org") as path:
            wall = Wall(home=folders.home, writable=folders.writable, proxy=path)
            with running(wall, "sh", "-c", "echo $CLAUDE_CODE_HOST_HTTP_PROXY_PORT > port; sleep 60"):
                port = folders.writable[0] / "port"
                assert until(lambda: port.exists() and port.read_text().strip())
                refused = request(12345)
                assert b"ConnectionReset" in refused or b"BrokenPipe" in refused or refused == b"b''\n"
                assert not log.read_text()
                assert request(0) == b"b'HTTP/1.1'\n"


class TestEscapes:
    """The whole table, as for bubblewrap."""

    pytestmark = needs_srt

    @pytest.mark.slow
    @pytest.mark.parametrize("group", Group)
    def test_all_are_refused(self, group: Group) -> None:
        program = srt.find(os.environ).program
        outcomes = try_escapes(lambda wall: Walled(srt, program, wall), backend="srt", groups=[group])
        assert [(outcome.name, outcome.result, outcome.detail) for outcome in outcomes if not outcome.is_good] == []
        assert any(outcome.result is Result.REFUSED for outcome in outcomes)

    @pytest.mark.slow
    def test_ordinary_work_succeeds(self) -> None:
        program = srt.find(os.environ).program
        outcomes = try_work(lambda wall: Walled(srt, program, wall))
        failed = {outcome.name: outcome.detail for outcome in outcomes if not outcome.is_good}
        assert failed.keys() <= {"loopback", "sanitizer"}, failed  # srt hides what LeakSanitizer reads in /proc
        assert "PermissionError" in failed["loopback"]  # it has a unix socket, and srt allows none


class TestKill:
    """Signals to any one of the processes outside; a daemon is among those inside."""

    pytestmark = needs_srt

    @pytest.mark.parametrize("victim", ["launcher", "guard", "srt", "sh", "bwrap"])
    def test_nothing_survives(self, folders: Wall, victim: str) -> None:
        with running(folders, "sh", "-c", "setsid sleep 4321 & touch up; sleep 4322") as process:
            assert until((folders.writable[0] / "up").exists)
            tree = descendants(process.pid)
            label = next(word for word in cmdline(process.pid) if "/ralph-" in word)
            outside = {"launcher": process.pid, "guard": tree[0]}
            outside |= {"srt": child(tree, "node"), "sh": child(tree, "sh"), "bwrap": child(tree, "bwrap")}
            assert len(tree) > 8
            os.kill(outside[victim], signal.SIGKILL)
            process.wait(timeout=20)
            assert until(lambda: not processes_with(label) and not alive(tree)), [cmdline(pid) for pid in alive(tree)]
            assert until(lambda: not Path(label).exists())
            assert process.returncode not in (0, None)

    def test_a_signal_is_not_success(self, folders: Wall) -> None:
        with running(folders, "sh", "-c", "touch up; sleep 4321") as process:
            assert until((folders.writable[0] / "up").exists)
            tree = descendants(process.pid)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(timeout=20) == 128 + signal.SIGTERM
            assert until(lambda: not alive(tree))

    def test_a_timeout_ends_all_of_it(self, folders: Wall) -> None:
        program = srt.find(os.environ).program
        walled = Walled(srt, program, folders)
        argv = ("sh", "-c", "trap '' TERM; setsid sleep 4321 & sleep 4322")
        ended = run(argv, cwd=folders.writable[0], env=dict(os.environ), timeout=2, grace=0.2, enclosure=walled)
        assert ended.timed_out
        assert not processes_with(str(folders.writable[0]))

    def test_it_ends_with_the_process_that_started_it(self, folders: Wall) -> None:
        """As when the loop is killed: nobody calls `end`."""
        program = srt.find(os.environ).program
        script = (
            "import os, sys, time; from pathlib import Path; from ralph.sandbox import srt; "
            "from ralph.sandbox.wall import Wall, Walled; from ralph.host.process.start import *; "
            "home, project = map(Path, sys.argv[1:3]); "
            "walled = Walled(srt, sys.argv[3], Wall(home=home, writable=(project,))); "
            "start(['sh', '-c', 'setsid sleep 4321 & touch up; sleep 4322'], cwd=project, env=dict(os.environ), "
            "stdin=False, before=before_start(UNLIMITED), enclosure=walled); time.sleep(60)"
        )
        loop = subprocess.Popen([sys.executable, "-c", script, folders.home, folders.writable[0], program])
        assert until((folders.writable[0] / "up").exists)
        tree = descendants(loop.pid)
        loop.kill()
        loop.wait()
        assert len(tree) > 8
        assert until(lambda: not alive(tree)), [cmdline(pid) for pid in alive(tree)]


class running:
    """A command inside, which is ended at the end of the block whatever happens."""

    def __init__(self, wall: Wall, *argv: str) -> None:
        self._walled = Walled(srt, srt.find(os.environ).program, wall)
        env = {"PATH": os.environ["PATH"]}
        self.process = start(argv, cwd=wall.writable[0], env=env, stdin=False, enclosure=self._walled)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)
        finish(self.process)
        self._walled.end(self.process)


def cmdline(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """Parents before their children."""
    rows = table().values()
    found = [pid]
    for parent in found:
        found += [row.pid for row in rows if row.parent == parent]
    return found[1:]


def child(tree: list[int], name: str) -> int:
    return next(pid for pid in tree if Path(cmdline(pid)[0]).name == name)


def alive(pids: list[int]) -> list[int]:
    rows = table()
    return [pid for pid in pids if pid in rows and not rows[pid].is_dead]


def fetch(url: str) -> str:
    return (
        "import urllib.request as r\n"
        f"try: print(r.urlopen({url!r}, timeout=10).read().decode())\n"
        "except OSError as error: print('no:', type(error).__name__, *filter(None, [getattr(error, 'code', None)]))"
    )


@pytest.fixture
def service() -> Iterator[int]:
    """A service of this machine that answers every request with `hello`."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            client.recv(9999)
            client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@contextmanager
def proxy(folder: Path, log: Path, *hosts: str) -> Iterator[Path]:
    """The real one, in its own process."""
    with Network(folder, log, {"agent": hosts}, os.environ) as network:
        yield network.socket("agent")
