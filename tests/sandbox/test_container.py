"""Docker and Podman, for real: what is visible in a container, what it may use, and that none outlives the run."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.process.start import Finished, finish, run, start
from ralph.sandbox import container_image
from ralph.sandbox.wall import Mount, Quota, Wall
from support.cli import ralph
from support.containers import IMAGE, Containers, docker_in, podman_in, write_image

PODMAN = pytest.param("podman", marks=pytest.mark.needs("podman", "runc"))


@pytest.fixture(scope="module", params=[PODMAN, "docker"])
def engine(request: pytest.FixtureRequest) -> Iterator[Containers]:
    folder = Path(tempfile.mkdtemp(prefix="ralph-test-"))  # a short path: sockets
    folder.chmod(0o755)
    try:
        with (podman_in if request.param == "podman" else docker_in)(folder) as containers:
            write_image(folder / "image.tar")
            containers.import_image(folder / "image.tar")
            yield containers
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def containers(engine: Containers, monkeypatch: pytest.MonkeyPatch) -> Containers:
    for name, value in engine.env.items():
        monkeypatch.setenv(name, value)
    return engine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def wall_around(project: Path, quota: Quota | None = None, **changes: object) -> Wall:
    fields = {"home": Path("/home/ada"), "writable": (project,), "image": IMAGE, **changes}
    return Wall(**fields, quota=quota or Quota())  # type: ignore[arg-type]


def call(containers: Containers, wall: Wall, *argv: str, timeout: float = 30, **env: str) -> Finished:
    (project, *_) = wall.writable
    return run(
        argv, cwd=project, env={"PATH": os.environ["PATH"], **env}, timeout=timeout, enclosure=containers.walled(wall)
    )


def python(containers: Containers, wall: Wall, code: str) -> Finished:
    return call(containers, wall, "python3", "-c", code)


# --- a command inside ------------------------------------------------------------------------------------------------


def test_a_command_works_in_the_project_and_its_files_belong_to_the_caller(
    containers: Containers, project: Path
) -> None:
    done = call(containers, wall_around(project), "sh", "-c", "pwd; echo oops >&2; echo $HOME > made; exit 3")
    assert (done.code, done.out, done.err, done.problem) == (3, f"{project}\n".encode(), b"oops\n", "")
    assert (project / "made").read_text() == "/home/ada\n"
    assert (project / "made").stat().st_uid == os.getuid()
    assert done.swept == 0
    assert [name for name in containers.names() if name.startswith("ralph-")] == []


def test_input_and_long_output_pass(containers: Containers, project: Path) -> None:
    text = b"0123456789abcdef" * 50_000
    walled = containers.walled(wall_around(project))
    done = run(("cat",), cwd=project, env={}, stdin=text, enclosure=walled, limit=2_000_000)
    assert (done.code, done.out) == (0, text)


def test_a_container_can_be_started_from_a_thread_that_ends(containers: Containers, project: Path) -> None:
    walled = containers.walled(wall_around(project))
    processes = []

    def begin() -> None:
        argv = ("sh", "-c", "sleep 0.5; echo still here")
        processes.append(start(argv, cwd=project, env={}, stdin=False, enclosure=walled))

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    (process,) = processes
    assert process.communicate(timeout=30)[0] == b"still here\n"
    finish(process)
    assert walled.end(process) == ""


def test_secrets_are_not_on_the_command_line(containers: Containers, project: Path) -> None:
    walled = containers.walled(wall_around(project))
    secret = secrets.token_hex(16)
    process = start(
        ("sh", "-c", "echo $TOKEN; sleep 1"), cwd=project, env={"TOKEN": secret}, stdin=False, enclosure=walled
    )
    assert process.stdout
    assert process.stdout.readline().decode().strip() == secret
    assert secret not in subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    process.kill()
    finish(process)
    walled.end(process)


def test_the_environment_is_what_was_asked_for(
    containers: Containers, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "1")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test")
    code = "import os; print(sorted(os.environ)); print(os.environ['TEXT'])"
    done = call(containers, wall_around(project), "python3", "-c", code, TEXT="two\nlines", DOCKER_AUTH="x")
    names, text = done.out.decode().split("\n", 1)
    assert text == "two\nlines\n"
    assert {"TEXT", "HOME", "PATH", "TMPDIR"} <= set(eval(names))
    assert not {"OF_THE_HOST", "HTTP_PROXY", "http_proxy", "DOCKER_AUTH", "DOCKER_HOST"} & set(eval(names))


def test_a_program_of_the_host_is_found_by_name_in_the_image(containers: Containers, project: Path) -> None:
    done = call(containers, wall_around(project), "/home/ada/.nvm/versions/bin/git", "--version")
    assert (done.code, done.out[:11]) == (0, b"git version")
    done = call(containers, wall_around(project), "/home/ada/.nvm/versions/bin/claude", "-p")
    assert (done.code, done.err) == (
        127,
        b"ralph: claude is not installed in the container image; add it to the image\n",
    )


def test_a_program_in_a_mounted_folder_is_kept_and_its_folder_is_on_path(containers: Containers, project: Path) -> None:
    tools = project.parent / "tools"
    tools.mkdir()
    (tools / "greet").write_text("#!/bin/sh\necho hello\n")
    (tools / "greet").chmod(0o755)
    wall = wall_around(project, readable=(tools,))
    assert call(containers, wall, str(tools / "greet")).out == b"hello\n"
    assert call(containers, wall, "greet", PATH=f"/nowhere:{tools}").out == b"hello\n"


# --- files -----------------------------------------------------------------------------------------------------------


def test_only_what_is_mounted_is_visible(containers: Containers, project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("x")
    for name in ("hidden", "kept"):
        (project / name).mkdir()
        (project / name / "file").write_text("old")
    (project / ".env").write_text("x")
    (tmp_path / "home").mkdir()
    (tmp_path / "other").write_text("mounted")
    wall = wall_around(
        project,
        home_source=tmp_path / "home",
        hidden=(project / "hidden", project / ".env", Path.home()),
        read_only=(project / "kept",),
        mounts=(Mount(tmp_path / "other", project / "there"),),
        readable=(tmp_path / "missing",),
    )
    done = call(
        containers,
        wall,
        "sh",
        "-c",
        f"cat {outside}; ls hidden; cat .env there; touch ~/mine kept/new; echo x > kept/file; touch /usr/x /etc/x",
    )
    assert done.out == b"mounted"
    assert [line.rpartition(": ")[2] for line in done.err.decode().splitlines()] == [
        "No such file or directory",
        *["Read-only file system"] * 4,
    ]
    assert (tmp_path / "home" / "mine").exists()
    assert (project / "kept" / "file").read_text() == "old"


def test_paths_are_passed_as_they_are(containers: Containers, project: Path, tmp_path: Path) -> None:
    names = ["a,b", "c:d", "e f", "g\nh", 'i"j', "k=l", "ü", "$m'n"]
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir()
    wall = wall_around(project, writable=(project, *folders))
    code = "import sys\nfor folder in sys.argv[1:]: open(folder + '/made', 'w')"
    done = call(containers, wall, "python3", "-c", code, *map(str, folders))
    assert (done.code, done.err) == (0, b"")
    assert all((folder / "made").exists() for folder in folders)
    done = run(("touch", "here"), cwd=folders[0], env={}, enclosure=containers.walled(wall))
    assert (folders[0] / "here").exists()


def test_the_sockets_of_services_in_the_project_are_covered(containers: Containers, project: Path) -> None:
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as service:
        folder = Path(name)
        service.bind(f"{folder}/service")
        service.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('{folder}/service')"
        done = python(containers, wall_around(project, writable=(project, folder)), code)
        assert b"ConnectionRefusedError" in done.err


def test_temporary_folders_are_private_and_can_hold_programs(containers: Containers, project: Path) -> None:
    script = (
        "echo 'echo ran' > /tmp/x; chmod +x /tmp/x 2>/dev/null; ls /tmp; sh /tmp/x; touch ~/y /var/tmp/z && echo fine"
    )
    done = call(containers, wall_around(project), "sh", "-c", script)
    assert done.out.decode().split()[-2:] == ["ran", "fine"]
    assert not Path("/tmp/x").exists()


# --- rights ----------------------------------------------------------------------------------------------------------

STATUS = "print({l.split()[0]: l.split()[1] for l in open('/proc/self/status') if l[:3] in ('Cap', 'NoN', 'Sec')})"


def test_there_are_no_capabilities_and_no_new_privileges(containers: Containers, project: Path) -> None:
    status = eval(python(containers, wall_around(project), STATUS).out)
    assert {int(value, 16) for name, value in status.items() if name.startswith("Cap")} == {0}
    assert (status["NoNewPrivs:"], status["Seccomp:"]) == ("1", "2")


HARM = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for number in (signal.SIGSTOP, signal.SIGKILL):
    os.kill(1, number)
for name, call in {
    "trace": lambda: libc.ptrace(16, 1, 0, 0),
    "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    "user namespace": lambda: libc.unshare(0x10000000),
    "device": lambda: libc.mknod(b"/tmp/disk", 0o60600, 0),
}.items():
    print(name, call())
"""


def test_the_first_process_and_the_kernel_are_out_of_reach(containers: Containers, project: Path) -> None:
    done = python(containers, wall_around(project), HARM)
    assert done.out.decode().splitlines() == ["trace -1", "mount -1", "user namespace -1", "device -1"]


# --- network ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(project: Path) -> Iterator[Path]:
    """Answers every request itself: what arrives here came through the relay."""
    folder = Path(tempfile.mkdtemp(prefix="ralph-test-"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "proxy"))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    line = client.recv(4096).split(b"\r\n")[0]
                    client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nproxied " + line)

        thread = threading.Thread(target=serve)
        thread.start()
        yield folder / "proxy"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    shutil.rmtree(folder)


FETCH = "import urllib.request as r; print(r.urlopen('http://allowed.test/x', timeout=5).read().decode())"


def test_the_only_way_out_is_the_proxy(containers: Containers, project: Path, proxy: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        wall = wall_around(project, proxy=proxy)
        assert python(containers, wall, FETCH).out == b"proxied GET http://allowed.test/x HTTP/1.1\n"
        direct = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert b"ConnectionRefusedError" in python(containers, wall, direct).err
        away = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
        assert b"Network is unreachable" in python(containers, wall, away).err
    done = python(containers, wall_around(project), FETCH)
    assert (done.code, b"URLError" in done.err) == (1, True)


# --- limits ----------------------------------------------------------------------------------------------------------

FORKS = "import os, time\nfor _ in range(200):\n  if os.fork() == 0:\n    time.sleep(5); os._exit(0)"


@pytest.mark.parametrize(
    ("code", "quota", "problem"),
    [
        ("bytearray(300_000_000)", Quota(memory_mb=100), "the limit sandbox.limits.memory_mb was reached"),
        (FORKS, Quota(processes=50), "the limit sandbox.limits.processes was reached"),
        (
            "import os; os.fork()\nwhile True: pass",
            Quota(cpu_seconds=2),
            "the limit sandbox.limits.cpu_seconds was reached",
        ),
        ("open('x', 'wb').write(bytes(3_000_000))", Quota(disk_mb=2), ""),
    ],
    ids=["memory", "processes", "cpu", "disk"],
)
def test_a_limit_ends_it_and_is_named(
    code: str, quota: Quota, problem: str, containers: Containers, project: Path
) -> None:
    done = python(containers, wall_around(project, quota), code)
    assert done.code
    assert done.problem == problem
    assert done.duration < 15


# --- the end ---------------------------------------------------------------------------------------------------------


def alive(mark: str) -> list[str]:
    """Processes of this machine, in containers too."""
    lines = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if line.startswith(f"sleep {mark}")]


def until(condition: object, seconds: float) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def mark() -> str:
    return str(secrets.randbelow(1_000_000) + 1_000_000)


def daemons(mark: str) -> tuple[str, ...]:
    return ("sh", "-c", f"sleep {mark} & setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}")


def test_daemons_end_with_the_command(containers: Containers, project: Path, mark: str) -> None:
    done = call(containers, wall_around(project), "sh", "-c", f"setsid sleep {mark} & sleep 0.1; exit 0")
    assert done.code == 0
    assert alive(mark) == []


def test_a_command_that_ignores_signals_ends_when_its_time_is_over(
    containers: Containers, project: Path, mark: str
) -> None:
    done = call(containers, wall_around(project), *daemons(mark), timeout=1)
    assert done.timed_out
    assert until(lambda: alive(mark) == [], 3)
    assert containers.names() == []


def test_a_signal_reaches_the_command(containers: Containers, project: Path) -> None:
    walled = containers.walled(wall_around(project))
    argv = ("sh", "-c", "trap 'echo bye; exit 5' TERM; echo ready; sleep 60 & wait")
    process = start(argv, cwd=project, env={}, stdin=False, enclosure=walled)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    assert process.stdout.read() == b"bye\n"
    assert process.wait(timeout=10) == 5
    finish(process)
    assert walled.end(process) == ""


def test_a_container_ends_though_its_client_was_killed(containers: Containers, project: Path, mark: str) -> None:
    walled = containers.walled(wall_around(project))
    process = start(daemons(mark), cwd=project, env={}, stdin=False, enclosure=walled)
    assert until(lambda: len(alive(mark)) == 3, 10)
    process.kill()
    finish(process)
    begun = time.monotonic()
    walled.end(process)
    assert until(lambda: alive(mark) == [], 3)
    assert time.monotonic() - begun < 5
    assert containers.names() == []


RUN = """
import sys
from pathlib import Path
from ralph.host.process.start import run
from ralph.sandbox import docker, podman
from ralph.sandbox.wall import Wall, Walled
name, program, project, image, *argv = sys.argv[1:]
wall = Wall(home=Path("/home/ada"), writable=(Path(project),), image=image)
walled = Walled({"docker": docker, "podman": podman}[name], program, wall)
run(argv, cwd=Path(project), env={}, timeout=60, enclosure=walled)
"""


def test_no_container_outlives_a_killed_run(containers: Containers, project: Path, mark: str) -> None:
    arguments = [containers.backend.NAME, containers.program, str(project), IMAGE, *daemons(mark)]
    with tempfile.TemporaryDirectory(prefix="ralph-test-") as folder:  # a killed run leaves its socket there
        env = {**os.environ, "TMPDIR": folder}
        ralph = subprocess.Popen([sys.executable, "-c", RUN, *arguments], start_new_session=True, env=env)
        assert until(lambda: len(alive(mark)) == 3, 15)
        ralph.send_signal(signal.SIGKILL)
        ralph.wait()
        assert until(lambda: alive(mark) == [], 3)
        assert until(lambda: containers.names() == [], 10)


# --- images ----------------------------------------------------------------------------------------------------------


def test_an_image_is_built_once_from_the_containerfile(
    containers: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "Containerfile"
    file.write_text(f"FROM {IMAGE}\nENV MADE=here\n")
    monkeypatch.setattr(container_image, "CONTAINERFILE", file)
    messages: list[str] = []
    name = containers.backend.prepare(containers.program, "", messages.append)  # type: ignore[attr-defined]
    assert messages == [f"building the container image {name}: this happens once and takes a few minutes"]
    assert name == container_image.own_image()
    assert containers.backend.prepare(containers.program, "", messages.append) == name  # type: ignore[attr-defined]
    assert len(messages) == 1
    (tmp_path / "project").mkdir()
    wall = wall_around(tmp_path / "project", image="")
    assert call(containers, wall, "sh", "-c", "echo $MADE").out == b"here\n"


def test_an_image_that_cannot_be_made_is_an_error_before_anything_starts(
    containers: Containers, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "Containerfile"
    file.write_text(f"FROM {IMAGE}\nRUN nonsense\n")
    monkeypatch.setattr(container_image, "CONTAINERFILE", file)
    with pytest.raises(SetupError, match=r"could not build the container image ralph-sandbox:\w+: ") as error:
        call(containers, wall_around(project, image=""), "true")
    assert "or set sandbox.image" in error.value.hint
    with pytest.raises(SetupError, match=r"could not pull the container image localhost:1/none: "):
        call(containers, wall_around(project, image="localhost:1/none"), "true")


def test_an_image_without_python_is_named(containers: Containers, project: Path, tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text(f"FROM {IMAGE}\nENV PATH=/nowhere\n")
    containers.call("build", "--tag", "localhost/without:1", "--file", str(tmp_path / "Containerfile"), str(tmp_path))
    done = call(containers, wall_around(project, image="localhost/without:1"), "true")
    assert done.code == 127
    assert done.problem == "the container did not start; its image needs python3, 3.8 or newer"


# --- a whole run -----------------------------------------------------------------------------------------------------


def test_a_run_works_in_containers(containers: Containers, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agent, checks and the repository of the agent: a story is done and its commit arrives in the checkout."""
    monkeypatch.delenv("RALPH_SANDBOX", raising=False)
    (project / "agent.sh").write_text(
        "cat > /dev/null\necho done > a.txt\ngit add a.txt && git commit -qm 'by the agent'\n"
        """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"\n"""
    )
    for words in (("init", "-q", "-b", "main"), ("config", "user.name", "Ada"), ("config", "user.email", "a@b.test")):
        subprocess.run(["git", *words], cwd=project, check=True)
    assert ralph("init", "work", "--no-input", "--no-checks", cwd=project).code == 0
    assert ralph("task", "add", "Write it", "--criterion", "a.txt is there", cwd=project).code == 0
    config = project / ".ralph/config.yaml"
    config.write_text(f"checks: [test ! -e broken.txt]\nsandbox: {{use: {containers.backend.NAME}, image: {IMAGE}}}\n")
    subprocess.run("git add -A && git commit -qm begin", shell=True, cwd=project, check=True)
    agent = ("--agent", "command", "--agent-command", "sh ./agent.sh")
    done = ralph("run", "--trust", "--skip-review", *agent, cwd=project)
    assert done.code == 0, done.out + done.err
    assert f"inside its sandbox ({containers.backend.TITLE}" in done.out
    assert (project / "a.txt").stat().st_uid == os.getuid()
    log = subprocess.run(["git", "log", "--format=%s"], cwd=project, capture_output=True, text=True, check=True)
    assert "by the agent" in log.stdout
    assert [name for name in containers.names() if name.startswith("ralph-")] == []
