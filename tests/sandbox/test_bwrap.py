"""The bubblewrap command line: what it shows, hides and limits, with real sandboxes."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import ralph
from ralph.host.process.start import CannotStart, Finished, finish, run, start
from ralph.sandbox import bwrap, cgroup
from ralph.sandbox.wall import Mount, Quota, Wall, Walled

pytestmark = pytest.mark.needs("bwrap")
IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can")


class Place:
    def __init__(self, base: Path) -> None:
        self.home, self.inner, self.work = base / "home", base / "inner", base / "work"
        for folder in (self.home, self.inner, self.work):
            folder.mkdir(parents=True)

    def wall(self, **more: object) -> Wall:
        values: dict[str, object] = {"home": self.home, "home_source": self.inner, "writable": (self.work,)}
        return Wall(**{**values, **more})  # type: ignore[arg-type]

    def run(self, script: str, wall: Wall | None = None, cwd: Path | None = None, *, sweep: bool = True) -> Finished:
        program = bwrap.find(os.environ).program
        wall = wall or self.wall()
        inside = Walled(bwrap, program, wall)
        argv = ("/bin/sh", "-c", script)
        env = {"PATH": os.environ["PATH"], "HOME": str(wall.home)}
        return run(argv, cwd=cwd or self.work, env=env, timeout=30, enclosure=inside, sweep=sweep)


@pytest.fixture
def place() -> Iterator[Place]:
    """With a short path: that of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ralph-") as name:
        yield Place(Path(name))


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is neither temporary nor in a home folder, so that it is visible inside."""
    folder = Path("/var/lib") / f"ralph-test-{secrets.token_hex(4)}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_work_and_home_can_be_written_and_nothing_else(place: Place) -> None:
    (place.home / "secret").write_text("secret")
    done = place.run(
        "touch here ~/there /tmp/x /dev/shm/x || exit 1; ls -A ~; cat ~/secret;"
        "for f in / /etc /usr /run /home /dev /sys /var; do touch $f/x && exit 2; done; exit 0"
    )
    assert (done.code, done.out) == (0, b"there\n"), done
    assert (place.work / "here").exists()
    assert (place.inner / "there").exists()
    assert not (place.home / "there").exists()
    assert not Path("/dev/shm/x").exists()


@pytest.mark.parametrize("name", ["with space", "quo'te\"", "new\nline", "--", "-x", "$(id)", "ümläut"])
def test_any_name_of_a_folder(place: Place, name: str) -> None:
    folder = place.work.parent / name
    folder.mkdir()
    done = place.run("touch made; pwd", place.wall(writable=(folder,)), folder)
    assert (done.code, done.out.decode()) == (0, f"{folder}\n"), done
    assert (folder / "made").exists()


def test_a_project_behind_links_is_there_in_both_spellings(place: Place) -> None:
    base = place.work.parent
    (base / "link").symlink_to(place.work)
    (place.home / "project").symlink_to(base / "link")
    for spelling in (base / "link", place.home / "project"):
        done = place.run(f"touch made && ls {place.work}/made", place.wall(writable=(spelling,)), spelling)
        assert done.code == 0, done
        (place.work / "made").unlink()


def test_a_home_folder_behind_a_link(place: Place) -> None:
    (place.home / "secret").write_text("secret")
    link = place.home.parent / "link"
    link.symlink_to(place.home)
    done = place.run(f"touch ~/x; echo $HOME; cat {place.home}/secret", place.wall(home=link))
    assert done.out.decode() == f"{link}\n"
    assert b"No such file" in done.err
    assert (place.inner / "x").exists()


LINKED = """
import os, sys
from pathlib import Path
from ralph.host.process.start import run
from ralph.sandbox import bwrap
from ralph.sandbox.wall import Wall, Walled
for folder in ("/home/ada/project", "/tmp/inner"):
    os.makedirs(folder)
Path("/tmp/socket").touch()
Path("/home/ada/secret").write_text("secret")
home, project = Path("/home/ada"), Path("/home/ada/project")
wall = Wall(home=home, home_source=Path("/tmp/inner"), writable=(project,), proxy=Path("/tmp/socket"))
env = {"PATH": os.environ["PATH"], "HOME": "/home/ada"}
script = "touch x ~/y /tmp/z && ls ~ && cat /usr/home/ada/secret"
done = run(("sh", "-c", script), cwd=project, env=env, enclosure=Walled(bwrap, sys.argv[1], wall))
print(done.out.decode().split(), done.err.decode().count("No such file"), os.listdir(project), done.err.decode())
"""


def test_system_folders_that_are_links_and_no_run(tmp_path: Path) -> None:
    """/tmp -> /private/tmp, /home -> /usr/home, and no /run: a system that is built with bubblewrap for this test."""
    python, packages = Path(os.path.realpath(sys.executable)), Path(msgspec.__file__).parent.parent
    if python.is_relative_to("/tmp") or python.is_relative_to("/home") or not IS_ROOT:
        pytest.skip("this Python would not be visible there")
    system: list[str] = []
    for entry in Path("/").iterdir():
        if entry.is_symlink():
            system += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry.name not in ("dev", "home", "proc", "root", "run", "tmp", "usr", "var", "private"):
            system += ["--ro-bind", str(entry), str(entry)]
    for entry in Path("/usr").iterdir():
        system += ["--ro-bind", str(entry), str(entry)] if not entry.is_symlink() and entry.name != "home" else []
    for folder in (sys.base_prefix, packages, ralph_folder()):
        target = folder if str(folder) == sys.base_prefix else f"/packages/{Path(folder).name}"
        system += ["--ro-bind", str(folder), str(target)]
    for link, target in (("/tmp", "/private/tmp"), ("/home", "/usr/home")):
        system += ["--dir", target, "--symlink", target, link]
    program = bwrap.find(os.environ).program
    outer = [program, "--cap-add", "ALL", "--tmpfs", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    env = {"PATH": "/usr/bin:/bin", "HOME": "/home/ada", "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPATH"] = f"/packages/{ralph_folder().name}:/packages/{packages.name}"
    inner = ["--dir", "/var/tmp", "--", str(python), "-c", LINKED, program]
    done = run((*outer, *system, *inner), cwd=Path("/"), env=env, timeout=60)
    assert done.out.decode().startswith("['project', 'y'] 1 ['x']"), done


def ralph_folder() -> Path:
    return Path(ralph.__file__).parent.parent


@pytest.mark.parametrize("home", ["/", "/nonexistent"])
def test_a_home_folder_that_cannot_be_made(place: Place, home: str) -> None:
    done = place.run("touch ~/x; ls /etc >/dev/null && echo $HOME", place.wall(home=Path(home)))
    assert (done.code, done.out) == (0, b"/tmp/home\n"), done
    assert (place.inner / "x").exists()


def test_missing_paths_are_left_out_and_a_missing_folder_is_named(place: Place) -> None:
    missing = place.work / "missing"
    wall = place.wall(readable=(missing,), read_only=(missing,), hidden=(missing,), mounts=(Mount(missing, missing),))
    assert place.run("true", wall).code == 0
    with pytest.raises(CannotStart, match="no such folder"):
        place.run("true", cwd=missing)


def test_inner_mounts_go_over_outer_ones(place: Place) -> None:
    (place.work / ".git").mkdir()
    (place.work / ".git" / "config").write_text("real")
    other = place.home / "other"
    other.write_text("mounted")
    (place.work / "file").write_text("hidden")
    wall = place.wall(
        read_only=(place.work / ".git",), mounts=(Mount(other, place.work / "file"),), hidden=(place.work / "none",)
    )
    done = place.run("cat file; echo x >.git/config; echo y >new", wall)
    assert done.out == b"mounted"
    assert b"Read-only" in done.err
    assert (place.work / ".git" / "config").read_text() == "real"


def test_what_is_hidden_cannot_be_seen(place: Place, tmp_path: Path) -> None:
    folder, file = place.work / "state", place.work / "key"
    folder.mkdir()
    (folder / "x").write_text("x")
    file.write_text("secret")
    done = place.run("cat key state/x; ls state; true", place.wall(hidden=(file, folder), writable=()), Path("/"))
    assert done.out == b""


@as_root
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_service_outside_hidden_folders_cannot_be_reached(place: Place, outside: Path, kind: int) -> None:
    path = outside / "service.sock"
    for folder in (outside, place.work, place.inner):
        path = folder / f"service {kind}.sock"
        with socket.socket(socket.AF_UNIX, kind) as server:
            server.bind(str(path))
            if kind == socket.SOCK_STREAM:
                server.listen()
            inside = place.home / path.name if folder == place.inner else path
            code = f"import socket; socket.socket(socket.AF_UNIX, {int(kind)}).connect({str(inside)!r})"
            done = place.run(f"exec {sys.executable} -I -S -c '{code.replace(chr(39), chr(34))}'")
            assert done.code == 1
            assert b"Error" in done.err
            with socket.socket(socket.AF_UNIX, kind) as client:
                client.connect(str(path))  # it can be reached from outside


@as_root
def test_root_inside_cannot_read_what_only_root_can(place: Place) -> None:
    done = place.run("cat /etc/shadow /etc/gshadow; head -c 1 /proc/kcore; head -c1 /proc/keys")
    assert done.out == b""


@as_root
def test_root_inside_cannot_write_to_the_kernels_settings(place: Place) -> None:
    """The kernel lets user ID 0 write to /proc/sys without capabilities, and bubblewrap does not cover that."""
    done = place.run("for f in kernel/core_pattern vm/drop_caches; do (: >>/proc/sys/$f) && exit 3; done; exit 0")
    assert done.code == 0, done.err
    assert done.err.count(b"Read-only") == 2


def test_there_are_no_privileges_and_no_way_to_new_ones(place: Place) -> None:
    done = place.run("grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; unshare -U true")
    values = dict(line.split(":\t") for line in done.out.decode().splitlines())
    assert {values[name].strip("0") for name in values if name.startswith("Cap")} == {""}
    assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")
    assert done.code != 0


def test_all_of_it_ends_with_the_command(place: Place) -> None:
    beat = place.work / "beat"
    done = place.run("(setsid sh -c 'while :; do echo >>beat; sleep 0.01; done' >/dev/null 2>&1 &) ; sleep 0.2")
    assert done.code == 0
    size = beat.stat().st_size
    assert size
    time.sleep(0.1)
    assert beat.stat().st_size == size


def test_too_many_processes_are_refused_and_the_limit_is_named(place: Place) -> None:
    quota = Quota(processes=40)
    is_counted = "pids" in cgroup.controlled(quota)
    if IS_ROOT and not is_counted:
        pytest.skip("root has no limit of processes without a control group")
    done = place.run("for n in $(seq 100); do sleep 5 & done; wait", place.wall(quota=quota))
    assert b"ork" in done.err, done  # Cannot fork
    wanted = "the sandbox's limit of 40 processes was reached (sandbox.limits.processes)" if is_counted else ""
    assert done.problem == wanted


def test_a_group_is_removed_with_what_is_in_it() -> None:
    label = f"ralph-{secrets.token_hex(6)}"
    files = cgroup.create(label, Quota(processes=40))
    if not files:
        pytest.skip("no control group of our own here")
    sleeper = start(("sleep", "60"), cwd=Path("/"), env={"PATH": os.defpath, "HOME": "/nonexistent"}, stdin=False)
    for file in files:
        file.write_text(str(sleeper.pid))
    waiter = threading.Thread(target=sleeper.wait)  # what has ended stays in the group until somebody looks
    waiter.start()
    assert cgroup.end(label) == ""
    waiter.join()
    finish(sleeper)
    assert sleeper.returncode == -9
    assert not any(file.exists() for file in files)


def test_limits_of_single_processes(place: Place) -> None:
    wall = place.wall(quota=Quota(memory_mb=200, disk_mb=8, cpu_seconds=100, processes=500))
    for folder in ("/tmp", "/dev/shm", "."):
        assert place.run(f"head -c 12000000 /dev/zero >{folder}/x", wall).code != 0
    assert (place.work / "x").stat().st_size == 8 * 1024 * 1024
    assert place.run("ulimit -t; ulimit -c", wall).out == b"100\n0\n"


def test_the_limit_of_memory_is_for_all_together(place: Place) -> None:
    quota = Quota(memory_mb=200)
    if "memory" not in cgroup.controlled(quota):
        pytest.skip("no control group of our own for memory here")
    done = place.run(f"{sys.executable} -I -S -c 'bytearray(b\"x\") * 400_000_000'", place.wall(quota=quota))
    assert done.code != 0
    assert done.problem == "the sandbox's limit of 200 MB of memory was reached (sandbox.limits.memory_mb)"


def test_what_is_inside_is_ended_first_when_memory_runs_out(place: Place) -> None:
    assert place.run("cat /proc/self/oom_score_adj").out == b"500\n"


def test_no_descriptor_of_ours_is_inside(place: Place) -> None:
    with tempfile.TemporaryFile() as file:
        os.set_inheritable(file.fileno(), True)
        done = place.run("ls -l /proc/self/fd")
    kept = [line.split()[-3] for line in done.out.decode().splitlines()[1:]]
    assert kept == ["0", "1", "2", "3"], done  # 3 is the folder that ls reads


def test_the_groups_own_no_process_of_another(tmp_path: Path) -> None:
    """A group that we were put in is not ours; one that systemd delegates to the user is, and so is a whole system."""
    v1 = ["31 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"]
    assert not list(cgroup.parents_of(["8:pids:/somebody/else"], v1))
    top = tmp_path / "cgroup"
    own = top / "user.slice" / "user@1.service" / "app.slice" / "app.scope"
    own.mkdir(parents=True)
    for folder in (own, *own.parents):
        if folder.is_relative_to(top):
            (folder / "cgroup.procs").touch()
            (folder / "cgroup.subtree_control").write_text("" if folder == own else "memory pids\n")
    v2 = [f"31 23 0:28 / {top} rw - cgroup2 cgroup2 rw"]
    places = [parent.folder for parent in cgroup.parents_of([f"0::/{own.relative_to(top)}"], v2)]
    assert places == ([] if IS_ROOT else [own.parent])
    with contextlib.suppress(OSError):
        assert [parent.folder for parent in cgroup.parents_of(["0::/"], v2)] == [top]


@pytest.mark.needs("gcc")
def test_a_library_in_the_project_is_not_loaded_outside(place: Place) -> None:
    """LD_PRELOAD of a project is for its commands. bubblewrap itself is not confined yet when it is loaded."""
    (place.work / "x.c").write_text(
        "#include <fcntl.h>\n#include <unistd.h>\n"
        "__attribute__((constructor)) static void run(void) {"
        f' close(open("{place.home}/planted", O_CREAT | O_WRONLY, 0600)); }}'
    )
    run(("gcc", "-shared", "-fPIC", "-o", "x.so", "x.c"), cwd=place.work)
    env = {"PATH": os.environ["PATH"], "HOME": str(place.home), "LD_PRELOAD": f"{place.work}/x.so"}
    inside = Walled(bwrap, bwrap.find(os.environ).program, place.wall())
    done = run(("/bin/sh", "-c", "echo $LD_PRELOAD"), cwd=place.work, env=env, enclosure=inside)
    assert done.out.decode() == f"{place.work}/x.so\n", done
    assert (place.inner / "planted").exists()
    assert not (place.home / "planted").exists()


def test_bubblewrap_is_not_taken_from_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "node_modules" / ".bin" / "bwrap"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\necho bubblewrap 9.9.9\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = bwrap.find({"PATH": f"{planted.parent}:node_modules/.bin:{os.environ['PATH']}"})
    assert found.program == bwrap.find(os.environ).program
    assert bwrap.find({"PATH": str(planted.parent)}).why_not == "bubblewrap is not installed"


def test_ending_what_never_started_is_harmless() -> None:
    assert bwrap.end("bwrap", "ralph-never") == ""


def test_folders_for_temporary_files_that_are_hidden_are_not_named(place: Place) -> None:
    program = bwrap.find(os.environ).program
    kept, hidden = place.work / "tmp", place.home / "tmp"
    for folder in (kept, hidden):
        folder.mkdir()
    env = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": "/run/user/1000"}
    script = "mktemp && echo $TMPDIR,$XDG_RUNTIME_DIR"
    lines = []
    for folder in (kept, hidden):
        inside = Walled(bwrap, program, place.wall())
        done = run(
            ("/bin/sh", "-c", script), cwd=place.work, env=env | {"TMPDIR": str(folder)}, timeout=30, enclosure=inside
        )
        lines += done.out.decode().splitlines()
    assert lines[0].startswith(f"{kept}/")
    assert lines[1] == f"{kept},"
    assert lines[2].startswith("/tmp/")
    assert lines[3] == ","
