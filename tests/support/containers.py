"""Real containers in tests: an image made of this machine's own files, and storage that is gone with the test."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from ralph.host.process.start import Finished, run
from ralph.sandbox import docker, podman
from ralph.sandbox.wall import Backend, Wall, Walled

IMAGE = "localhost/ralph-test:1"
PROGRAMS = ("sh", "python3", "git", "env", "id", "ls", "cat", "sleep", "setsid", "touch", "mkdir", "ln", "stat", "kill")
FOLDERS = (
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "tmp",
    "run",
    "var",
    "var/tmp",
    "etc",
    "proc",
    "sys",
    "dev",
    "root",
)
LEFT_OUT = ("__pycache__", "/test", "/idlelib", "/lib2to3", "/ensurepip", "-packages", "/config-3", "/tkinter")


class Containers(Struct, frozen=True):
    """A program that runs containers, with storage of its own and `IMAGE` in it."""

    backend: Backend
    program: str
    env: Mapping[str, str]

    def walled(self, wall: Wall) -> Walled:
        return Walled(self.backend, self.program, wall)

    def names(self) -> list[str]:
        """Of all containers, whatever their state."""
        return self.call("ps", "--all", "--format", "{{.Names}}").split()

    def call(self, *arguments: str) -> str:
        done: Finished = run((self.program, *arguments), cwd=Path("/"), env={**os.environ, **self.env})
        assert done.ok, done.err
        return done.out.decode()

    def import_image(self, archive: Path) -> None:
        self.call("import", str(archive), IMAGE)


def write_image(archive: Path) -> None:
    """A root file system with the programs above and the libraries they need."""
    files: dict[str, str] = {}
    for name in PROGRAMS:
        program = shutil.which(name, path="/usr/bin:/bin")
        assert program, name
        for path in (program, *libraries(program)):
            files[inside(path)] = os.path.realpath(path)
    for module in Path("/usr/lib").glob("python3.*/lib-dynload/_ctypes.*"):
        files |= {inside(path): os.path.realpath(path) for path in libraries(str(module))}
    library = Path("/usr/lib") / Path(os.path.realpath("/usr/bin/python3")).name
    with tarfile.open(archive, "w") as tar:
        for folder in FOLDERS:
            add(tar, folder, tarfile.DIRTYPE, mode=0o1777 if folder.endswith("tmp") else 0o755)
        for link in ("bin", "lib", "lib64"):
            add(tar, link, tarfile.SYMTYPE, target=f"usr/{link}")
        for name, source in files.items():
            tar.add(source, name)
        tar.add(library, inside(str(library)), filter=lambda entry: None if is_left_out(entry.name) else entry)
        add(tar, "etc/passwd", content=b"root:x:0:0:root:/root:/bin/sh\n")


def is_left_out(name: str) -> bool:
    return any(part in name for part in LEFT_OUT)


def libraries(program: str) -> list[str]:
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [word for word in listing.split() if word.startswith("/")]


def inside(path: str) -> str:
    name = path.lstrip("/")
    return name if name.startswith("usr/") else f"usr/{name}"


def add(
    tar: tarfile.TarFile,
    name: str,
    kind: bytes = tarfile.REGTYPE,
    *,
    mode: int = 0o755,
    target: str = "",
    content: bytes = b"",
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
    tar.addfile(entry, io.BytesIO(content))


@contextmanager
def podman_in(folder: Path) -> Iterator[Containers]:
    """On any control groups: runc instead of crun, which refuses the hybrid kind."""
    (folder / "containers.conf").write_text(
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/graph"\n'
    )
    env = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    containers = Containers(podman, str(shutil.which("podman")), env)
    try:
        yield containers
    finally:
        run((containers.program, "system", "reset", "--force"), cwd=Path("/"), env={**os.environ, **env})


@contextmanager
def docker_in(folder: Path) -> Iterator[Containers]:
    """A daemon of the test's own, without any network."""
    program = shutil.which("docker")
    daemon = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not program or not daemon:
        pytest.skip("not installed: dockerd")
    if os.getuid() != 0:
        pytest.skip("only root can start dockerd")
    address = f"unix://{folder}/docker.sock"
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "-H", address, "--pidfile", f"{folder}/pid"]
    options += ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([daemon, *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        containers = Containers(docker, program, {"DOCKER_HOST": address})
        deadline = time.monotonic() + 20
        while not docker.find({**os.environ, **containers.env}).version:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip("dockerd does not start here")
            time.sleep(0.2)
        yield containers
    finally:
        process.terminate()
        process.wait(timeout=20)
