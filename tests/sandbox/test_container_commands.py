"""The command lines for Docker and Podman, and what is said where they cannot be used. Stand-ins answer `info`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.process.enclosure import Start
from ralph.host.process.start import hard_limit
from ralph.sandbox import container, container_init, docker, podman, relay
from ralph.sandbox.bwrap import own_folders
from ralph.sandbox.wall import Found, Mount, Quota, Wall

ROOTFUL = r'["name=seccomp,profile=default"]\tDebian GNU/Linux 12\t20.10.24\ttrue\ttrue'
ROOTLESS = r'["name=seccomp,profile=builtin","name=rootless"]\tUbuntu 24.04\t28.2.2\tfalse\tfalse'
REMAPPED = r'["name=apparmor","name=userns"]\tUbuntu 24.04\t28.2.2\ttrue\ttrue'
DESKTOP = r'["name=seccomp,profile=unconfined"]\tDocker Desktop\t28.2.2\ttrue\ttrue'


@pytest.fixture(autouse=True)
def _forget() -> None:
    docker._engine.cache_clear()
    podman._engine.cache_clear()


def stand_in(folder: Path, name: str, body: str) -> str:
    """A program that answers `info` with `body`, a shell command."""
    program = folder / name
    script = f'#!/bin/sh\ncase "$1" in\ninfo) {body} ;;\n--version) echo {name} version 1 ;;\nesac\n'
    program.write_text(script)
    program.chmod(0o755)
    return str(program)


def enter_docker(tmp_path: Path, info: str, wall: Wall, *argv: str, **env: str) -> tuple[Start, Path]:
    """The start, and the folder with what is made for one container."""
    program = stand_in(tmp_path, "docker", f"printf '{info}'")
    entered = docker.enter(program, Start(argv or ("git", "status"), tmp_path, env), wall, "ralph-1")
    folder = container._lifelines["ralph-1"].folder
    assert docker.end(program, "ralph-1").startswith("the container did not start")
    assert not folder.exists()
    return entered, folder


def options(start: Start, name: str) -> list[str]:
    return [value for option, value in zip(start.argv, start.argv[1:], strict=False) if option == name]


def test_the_command_line_of_docker(tmp_path: Path) -> None:
    """Each option is in the reference of `docker container run`."""
    home = tmp_path / "home"
    home.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    wall = Wall(
        home=Path("/home/ada"),
        home_source=home,
        writable=(project,),
        proxy=tmp_path / "proxy",
        forwards=(5432,),
        image="python:3.12",
        quota=Quota(processes=100, memory_mb=512, disk_mb=10, cpu_seconds=60),
    )
    (tmp_path / "proxy").touch()
    start, folder = enter_docker(tmp_path, ROOTFUL, wall, "git", "status", PATH="/bin", TOKEN="secret")
    init, to_proxy = container_init.__file__, relay.__file__
    own = [f",dst={path},readonly" for path in own_folders()]
    argv = list(start.argv)
    for at in reversed([at for at, word in enumerate(argv) if word.endswith(tuple(own))]):
        del argv[at - 1 : at + 1]
    files = ulimits(("nofile", container._OPEN_FILES), ("nproc", container._PROCESSES))
    empty = "rw,exec,nosuid,nodev,mode=1777,size=10m"
    assert argv == [
        *(str(tmp_path / "docker"), "run", "--rm", "-i", "--name", "ralph-1", "--label", "ralph.sandbox"),
        *(
            "--hostname",
            "sandbox",
            "--pull",
            "never",
            "--log-driver",
            "none",
            "--no-healthcheck",
            "--cgroupns",
            "private",
            "--ipc",
            "private",
        ),
        *("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"),
        *("--network", "none", "--user", f"{os.getuid()}:{os.getgid()}"),
        *("--pids-limit", "100", "--memory", "512m", "--memory-swap", "512m"),
        *("--ulimit", "fsize=10485760:10485760", "--ulimit", "cpu=60:60", *files, "--ulimit", "core=0:0"),
        *("--tmpfs", f"/tmp:{empty}", "--tmpfs", f"/run:{empty}", "--tmpfs", f"/var/tmp:{empty}"),
        *("--mount", f"type=bind,src={home},dst=/home/ada"),
        *("--mount", f"type=bind,src={folder}/passwd,dst=/etc/passwd,readonly"),
        *("--mount", f"type=bind,src={folder}/run,dst=/run/ralph/run,readonly"),
        *("--mount", f"type=bind,src={init},dst=/run/ralph/init.py,readonly"),
        *("--mount", f"type=bind,src={folder}/filter,dst=/run/ralph/filter,readonly"),
        *("--mount", f"type=bind,src={to_proxy},dst=/run/ralph/relay.py,readonly"),
        *("--mount", f"type=bind,src={tmp_path}/proxy,dst=/run/ralph/proxy,readonly"),
        *("--mount", f"type=bind,src={project},dst={project}"),
        *("--env", "TOKEN", *(word for name in container._PROXIED for word in ("--env", name))),
        *("--env", "NO_PROXY", "--env", "no_proxy", "--env", "HOME=/home/ada", "--env", "TMPDIR=/tmp"),
        *("--workdir", str(tmp_path), "--entrypoint", "python3", "python:3.12", "-I", "-S", "/run/ralph/init.py"),
        *(
            "/run/ralph",
            "memory,processes",
            "60",
            "/bin",
            "/run/ralph/relay.py",
            "/run/ralph/proxy",
            "3128",
            "5432",
        ),
        *("--", "git", "status"),
    ]
    assert start.env["TOKEN"] == "secret"
    assert start.env["HOME"] == os.environ["HOME"]
    assert start.env["HTTPS_PROXY"] == "http://127.0.0.1:3128"


def ulimits(*limits: tuple[str, int]) -> list[str]:
    values = [(name, min(hard_limit(name) or most, most)) for name, most in limits]
    return [word for name, value in values for word in ("--ulimit", f"{name}={value}:{value}")]


def test_the_user_inside_is_the_caller(tmp_path: Path) -> None:
    wall = Wall(home=Path("/home/ada"), image="x")
    rootful = enter_docker(tmp_path, ROOTFUL, wall)[0]
    assert (options(rootful, "--user"), options(rootful, "--userns")) == ([f"{os.getuid()}:{os.getgid()}"], [])
    docker._engine.cache_clear()
    assert options(enter_docker(tmp_path, ROOTLESS, wall)[0], "--user") == ["0:0"]
    docker._engine.cache_clear()
    assert options(enter_docker(tmp_path, REMAPPED, wall)[0], "--userns") == ["host"]


def test_without_control_groups_each_process_is_limited(tmp_path: Path) -> None:
    wall = Wall(home=Path("/home/ada"), image="x", quota=Quota(processes=100, memory_mb=512))
    start, _ = enter_docker(tmp_path, ROOTLESS, wall)
    assert options(start, "--memory") == options(start, "--pids-limit") == []
    assert {"nproc=100:100", f"data={512 << 20}:{512 << 20}"} <= set(options(start, "--ulimit"))


def test_an_open_network_is_the_default_one_of_docker(tmp_path: Path) -> None:
    wall = Wall(home=Path("/home/ada"), image="x", is_network_open=True)
    start, _ = enter_docker(tmp_path, ROOTFUL, wall, HTTP_PROXY="http://proxy.test")
    assert options(start, "--network") == []
    assert (start.env["HTTP_PROXY"], "HTTP_PROXY" in options(start, "--env")) == ("http://proxy.test", True)


def test_variables_of_the_client_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", "/outside")
    wall = Wall(home=Path("/home/ada"), image="x")
    start, _ = enter_docker(
        tmp_path, ROOTFUL, wall, DOCKER_CONFIG="/inside", LD_PRELOAD="x.so", **{"BASH_FUNC_x%%": "()"}
    )
    assert start.env["DOCKER_CONFIG"] == "/outside"
    assert "LD_PRELOAD" not in start.env
    assert options(start, "--env") == ["LD_PRELOAD=x.so", "HOME=/home/ada", "TMPDIR=/tmp"]


def test_a_home_and_a_temporary_folder_in_the_project_are_kept(tmp_path: Path) -> None:
    wall = Wall(home=Path("/home/ada"), writable=(tmp_path,), image="x")
    wanted = {"HOME": f"{tmp_path}/h", "TMPDIR": f"{tmp_path}/t", "XDG_CACHE_HOME": f"{tmp_path}/c"}
    start, _ = enter_docker(tmp_path, ROOTFUL, wall, **wanted)
    assert options(start, "--env") == [f"{name}={value}" for name, value in wanted.items()]
    assert start.env["HOME"] == os.environ["HOME"]


def test_on_one_path_the_last_mount_counts(tmp_path: Path) -> None:
    """Docker refuses two."""
    other = tmp_path / "other"
    other.mkdir()
    wall = Wall(
        home=tmp_path,
        home_source=other,
        writable=(tmp_path, other),
        mounts=(Mount(other, tmp_path / "project"), Mount(other, tmp_path)),
        read_only=(other, tmp_path / "missing"),
        image="x",
    )
    mounts = options(enter_docker(tmp_path, ROOTFUL, wall)[0], "--mount")
    ours = [mount for mount in mounts if f"src={other}" in mount]
    assert ours == [
        f"type=bind,src={other},dst={tmp_path},readonly",
        f"type=bind,src={other},dst={other},readonly",
        f"type=bind,src={other},dst={tmp_path}/project,readonly",
    ]


def test_places_for_mounts_are_made_by_the_caller_and_never_outside(tmp_path: Path) -> None:
    """A daemon would make them as root. Links in the folder are the agent's."""
    home, tools = tmp_path / "home", tmp_path / "tools"
    for folder in (home, tools, tmp_path / "outside"):
        folder.mkdir()
    (tmp_path / "file").touch()
    (home / "link").symlink_to(tmp_path / "outside")
    targets = {"bin/tools": tools, "conf/file": tmp_path / "file", "link/tools": tools}
    mounts = tuple(Mount(source, Path("/home/ada") / name) for name, source in targets.items())
    enter_docker(tmp_path, ROOTFUL, Wall(home=Path("/home/ada"), home_source=home, mounts=mounts, image="x"))
    assert (home / "bin" / "tools").is_dir()
    assert (home / "conf" / "file").is_file()
    assert list((tmp_path / "outside").iterdir()) == []


def test_programs_of_this_machine_do_not_cover_those_of_the_image(tmp_path: Path) -> None:
    readable = tuple(map(Path, ("/", "/usr", "/usr/bin/env", "/etc/ssl", "/bin", str(tmp_path))))
    start, _ = enter_docker(tmp_path, ROOTFUL, Wall(home=Path("/home/ada"), readable=readable, image="x"))
    targets = {mount.partition(",dst=")[2].partition(",")[0] for mount in options(start, "--mount")}
    assert targets & set(map(str, readable)) == {str(tmp_path)}


def test_an_empty_folder_cannot_have_a_colon_in_its_path(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="a container cannot have an empty folder at /home/a:b: the path has a colon"):
        enter_docker(tmp_path, ROOTFUL, Wall(home=Path("/home/a:b"), image="x"))
    docker.end("docker", "ralph-1")


# --- where they cannot be used ---------------------------------------------------------------------------------------


def found(module: object, tmp_path: Path, name: str, body: str, **env: str) -> Found:
    stand_in(tmp_path, name, body)
    return module.find({"PATH": f"{tmp_path}:/usr/bin:/bin", **env})  # type: ignore[attr-defined,no-any-return]


def test_what_is_not_installed(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path)}
    assert docker.find(env) == Found(why_not="docker is not installed", hint="install Docker or Podman")
    assert podman.find(env) == Found(why_not="podman is not installed", hint="install the package `podman`")


DENIED = "echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1"
DOWN = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1"


@pytest.mark.parametrize(
    ("body", "env", "why"),
    [
        (f"printf '{ROOTFUL}'", {}, ""),
        (f"printf '{DESKTOP}'", {}, "Docker Desktop does not pass the proxy's socket into containers"),
        (
            f"printf '{ROOTFUL}'",
            {"DOCKER_HOST": "tcp://far.test:2376"},
            "the Docker daemon at tcp://far.test:2376 is on",
        ),
        (DENIED, {}, "the Docker daemon does not accept connections of this user"),
        (DOWN, {}, "the Docker daemon does not run"),
        ("exec sleep 60", {}, "the Docker daemon did not answer within 1 s"),
    ],
    ids=["works", "desktop", "remote", "denied", "down", "hangs"],
)
def test_why_docker_cannot_be_used(
    body: str, env: dict[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "_SECONDS", 1.0)
    answer = found(docker, tmp_path, "docker", body, **env)
    assert answer.why_not.startswith(why)
    assert bool(answer.why_not) == bool(why)


def test_docker_that_is_podman_is_not_docker(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho podman version 4.9.3\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DOCKER_HOST": "unix:///run/docker.sock"}
    assert docker.find(env).why_not == "`docker` is Podman here"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("""echo 'false 5.2.1 ["cpu","memory","pids"]'""", ""),
        ("echo 'true 5.2.1 []'", "Podman runs containers on another machine here"),
        ("echo 'false 3.4.4 []'", "Podman 3.4.4 is too old"),
        ("echo 'Error: no space left' >&2; exit 125", "`podman info` failed: Error: no space left"),
        ("exec sleep 60", "`podman info` did not answer within 1 s"),
    ],
    ids=["works", "remote", "old", "broken", "hangs"],
)
def test_why_podman_cannot_be_used(body: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podman, "_SECONDS", 1.0)
    assert found(podman, tmp_path, "podman", body).why_not == why


def test_podman_is_asked_what_it_can_limit(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "podman", """echo 'false 5.2.1 ["cpu","pids"]'""")
    engine = podman._engine(program)
    assert engine.controls == {"processes"}
    assert ("--userns" in engine.options) == (os.getuid() != 0)
