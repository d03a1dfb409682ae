"""Ordinary work that has to succeed inside a sandbox, as shell scripts that run in an empty folder of the clone."""

from __future__ import annotations

from msgspec import Struct

from ralph.sandbox.wall import Quota

NOT_HERE = 77
"""The exit code if the program is missing."""
_QUOTA = Quota(processes=2000, memory_mb=8000, disk_mb=2000, cpu_seconds=600)


class Work(Struct, frozen=True):
    name: str
    what: str
    commands: str
    needs: str = ""
    """A program."""
    is_slow: bool = False
    quota: Quota = _QUOTA

    @property
    def script(self) -> str:
        return (f"command -v {self.needs} >/dev/null || exit {NOT_HERE}\n" if self.needs else "") + self.commands


_GIT = """
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
git init -q . && echo text >file && git add file && git commit -qm First
test -z "$(git status --porcelain)" && git log --oneline | grep -q First
git clone -q . /tmp/copy && git -C /tmp/copy fsck
"""
_PYTEST = """
echo 'def test_sum(tmp_path): assert 1 + 1 == 2 and not list(tmp_path.iterdir())' >test_it.py
"$PYTHON" -c 'import pytest' 2>/dev/null || exit 77
"$PYTHON" -m pytest -q test_it.py
"""
_PTY = """
"$PYTHON" -c 'import pty, sys; sys.exit(pty.spawn(["sh", "-c", "test -t 0 && echo hello"]))'
"""
_THREADS = """
"$PYTHON" -c '
import threading, subprocess
ready = threading.Barrier(65)
threads = [threading.Thread(target=ready.wait) for _ in range(64)]
[thread.start() for thread in threads]; ready.wait(); [thread.join() for thread in threads]
many = [subprocess.Popen(["sleep", "0.1"]) for _ in range(32)]
assert not any(one.wait() for one in many)
'
"""
_LOOPBACK = """
"$PYTHON" -c '
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_UNIX, "/tmp/own.sock"), (socket.AF_UNIX, "own.sock")):
    server = socket.socket(family); server.bind((host, 0) if family == socket.AF_INET else host); server.listen()
    client = socket.socket(family); client.connect(server.getsockname())
    client.sendall(b"x"); assert server.accept()[0].recv(1) == b"x"
'
"""
_PROXY = """
"$PYTHON" -c '
import os, urllib.error, urllib.request
assert os.environ["http_proxy"]
try:
    urllib.request.urlopen("http://not-listed.example/", timeout=10)
except urllib.error.HTTPError as error:
    assert error.code == 403, error
    assert "not-listed.example" in error.read().decode()
'
"""
_SANITIZER = """
echo 'int main() { return 0; }' >a.c && gcc -fsanitize=address a.c 2>/dev/null || exit 77
./a.out
"""
_GO = """
export GOCACHE=/tmp/go-cache GOPATH=/tmp/go GOFLAGS=-mod=mod GOTOOLCHAIN=local
printf 'package main\\nfunc main() { c := make(chan int); go func() { c <- 7 }(); println(<-c) }\\n' >main.go
go mod init example.org/x 2>/dev/null && go build -o it . && ./it 2>&1 | grep -q 7
"""

WORK = (
    Work("write", "write to the project, the home folder and /tmp", 'touch x "$HOME/x" /tmp/x /var/tmp/x /dev/shm/x'),
    Work("git", "git: init, commit, status, clone, fsck", _GIT, "git"),
    Work("venv", "python: a virtual environment", '"$PYTHON" -m venv --without-pip v && v/bin/python -c "import ssl"'),
    Work("pytest", "python: pytest", _PYTEST),
    Work(
        "node",
        "node: a program with a child process",
        "node -e '\n"
        'const p = require("child_process").execFileSync("node", ["-e", "console.log(6 * 7)"]).toString();\n'
        'if (p.trim() !== "42") process.exit(1)\'',
        "node",
    ),
    Work(
        "npm",
        "npm: a script of a package",
        "npm init -y >/dev/null && npm pkg set scripts.it='echo ran' && npm run it",
        "npm",
    ),
    Work("gcc", "a C compiler", "echo 'int main() { return 0; }' >a.c && gcc a.c && ./a.out", "gcc"),
    Work("sanitizer", "a program with AddressSanitizer, which reserves terabytes", _SANITIZER, "gcc"),
    Work(
        "cargo",
        "cargo: build a crate",
        "cargo init -q --vcs none --name x && cargo run -q --offline",
        "cargo",
        is_slow=True,
    ),
    Work("go", "go: build a module", _GO, "go", is_slow=True),
    Work(
        "java",
        "java: run a class",
        "echo 'class A { public static void main(String[] a) { new Thread(() -> "
        'System.out.println("ran")).start(); } }\' >A.java && java A.java | grep -q ran',
        "java",
        is_slow=True,
    ),
    Work(
        "chromium",
        "chromium, headless and without its own sandbox",
        "chromium --headless --no-sandbox --disable-gpu "
        "--dump-dom 'data:text/html,<p>hello' 2>/dev/null | grep -q hello",
        "chromium",
        is_slow=True,
    ),
    Work("terminal", "a pseudo-terminal", _PTY),
    Work("threads", "64 threads and 32 processes", _THREADS),
    Work("locale", "text outside of ASCII", '"$PYTHON" -c "import sys; print(sys.stdout.encoding)" | grep -qi utf'),
    Work("loopback", "services of its own, on the loopback and unix sockets", _LOOPBACK),
    Work("proxy", "an answer from the proxy, with the reason", _PROXY),
)
