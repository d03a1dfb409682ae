"""Escapes from a sandbox, as small programs that run inside and exit with 0 if they got out: files, git, network.

A program is Python. `S` has what it knows about the world outside (`Scene.facts`); `read`, `write`, `connect` and
`call` report an escape if they succeed. An OSError is a refusal.
"""

from __future__ import annotations

from enum import StrEnum
from textwrap import dedent, indent

from msgspec import Struct

from ralph.sandbox.wall import Quota

TRIED = "tried"
"""The first line that a program prints: it did run."""
REFUSED = 10
"""Its exit code if it did not get out."""


class Group(StrEnum):
    FILES = "files"
    GIT = "git"
    NETWORK = "network"
    SOCKETS = "sockets"
    PROCESSES = "processes"
    KERNEL = "kernel"
    LIMITS = "limits"


class Control(StrEnum):
    """How it is shown that an attempt can succeed: without a sandbox."""

    BARE = "bare"
    STAND_IN = "stand-in"
    """Something harmless takes the place of what it reaches for."""
    NONE = ""


class Attempt(Struct, frozen=True):
    name: str
    what: str
    """What it tries, as a phrase: "read a key in ~/.ssh"."""
    group: Group
    program: str
    control: Control = Control.BARE
    only: tuple[str, ...] = ()
    """The backends that promise to refuse it; empty: all."""
    why_only: str = ""
    quota: Quota = Quota()

    def source(self) -> str:
        return f"{_PRELUDE}\ntry:\n{indent(dedent(self.program), '    ')}\n{_END}"


_PRELUDE = f"""
import ctypes, errno, glob, json, os, socket, struct, subprocess, sys, time
S = json.loads(os.environ["SCENE"])
TOKEN = S["token"]
print("{TRIED}", flush=True)
LIBC = ctypes.CDLL(None, use_errno=True)

def end(code, text):
    print(text, flush=True)
    os._exit(code)
def escaped(how):
    end(0, how)
def read(path):
    with open(path, "rb") as file:
        if TOKEN.encode() in file.read():
            escaped("read " + path)
def write(path, text="# planted\\n"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write(text)
def each(function, *values):
    last = None
    for value in values:
        try:
            function(value)
        except OSError as error:
            last = error
    if last:
        raise last
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(1)
        one.connect(address)
        if kind == socket.SOCK_DGRAM:
            one.send(b"hello")
        answer = one.recv(1000)
    escaped("connected to " + repr(address))
def ask(*lines, token=False):
    last = b"no answer"
    for line in lines:
        with socket.create_connection(S["proxy"], timeout=5) as one:
            one.sendall(line.encode("latin-1"))
            answer = b""
            try:
                while more := one.recv(1000):
                    answer += more
            except OSError:
                pass
        if TOKEN.encode() in answer or (not token and answer and b" 403 " not in answer and b" 400 " not in answer):
            escaped("the proxy took " + repr(line))
        last = answer.partition(b"\\r\\n")[0] or last
    end({REFUSED}, last.decode("latin-1"))
def call(name, *arguments):
    if name not in S["calls"]:
        raise OSError("no such call on this machine")
    ctypes.set_errno(0)
    result = LIBC.syscall(S["calls"][name], *arguments)
    code = ctypes.get_errno()
    if result < 0 and code in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT):
        raise OSError(code, os.strerror(code))
    return result, code
def reach(name, *arguments):
    result, code = call(name, *arguments)
    escaped(name + " reached the kernel: " + (os.strerror(code) if result < 0 else str(result)))
"""
_END = f"""
except (OSError, ValueError, MemoryError) as error:
    end({REFUSED}, str(error))
end({REFUSED}, "no effect outside")
"""

FILES = (
    Attempt("write-outside", "write into another project", Group.FILES, 'write(S["outside"] + "/planted")'),
    Attempt(
        "write-system",
        "write to /etc, /usr and other folders of the system",
        Group.FILES,
        """
        def plant(folder):
            path = folder + "/ralph-escape-" + TOKEN
            open(path, "x").close()
            os.unlink(path)
            escaped(folder)
        each(plant, *S["system_folders"])
        """,
        Control.STAND_IN,
    ),
    Attempt("read-ssh-key", "read a key in ~/.ssh", Group.FILES, 'read(S["secret_files"][0])'),
    Attempt("read-aws-login", "read the login in ~/.aws", Group.FILES, 'read(S["secret_files"][1])'),
    Attempt(
        "read-logins", "read logins of other programs in the home folder", Group.FILES, 'each(read, *S["secret_files"])'
    ),
    Attempt("read-other-home", "read a file of another user", Group.FILES, 'read(S["other_home"] + "/diary")'),
    Attempt("read-state", "read the loop's state", Group.FILES, 'read(S["state"] + "/journal")'),
    Attempt("change-state", "change the loop's state", Group.FILES, 'write(S["state"] + "/journal")'),
    Attempt("change-log", "forge a line in the proxy's log", Group.FILES, 'write(S["log"], "forged")'),
    Attempt(
        "plant-startup",
        "plant commands in ~/.bashrc, ~/.gitconfig and ~/.claude",
        Group.FILES,
        'each(write, *S["startup_files"])',
    ),
    Attempt(
        "plant-cron",
        "plant a job in the spools of cron and at",
        Group.FILES,
        """
        def plant(folder):
            path = folder + "/ralph-escape-" + TOKEN
            open(path, "x").close()
            os.unlink(path)
            escaped(folder)
        each(plant, *S["spools"])
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "read-shadow",
        "read /etc/shadow and /etc/sudoers",
        Group.FILES,
        """
        def look(path):
            with open(path, "rb") as file:
                if file.read(1):
                    escaped(path)
        each(look, *S["shadow"])
        """,
        Control.STAND_IN,
    ),
    Attempt("read-temporary", "read a file in the machine's /tmp", Group.FILES, 'read(S["temporary"])'),
    Attempt("read-shared-memory", "read shared memory of the machine", Group.FILES, 'read(S["shared"])'),
    Attempt(
        "symlink-read",
        "read through a symbolic link in the clone",
        Group.FILES,
        'os.symlink(S["secret_files"][0], S["clone"] + "/link-r"); read(S["clone"] + "/link-r")',
    ),
    Attempt(
        "symlink-write",
        "write through a symbolic link in the clone",
        Group.FILES,
        'os.symlink(S["outside"], S["clone"] + "/link-w"); open(S["clone"] + "/link-w/file", "a").write("x")',
    ),
    Attempt(
        "hard-link",
        "read through a hard link in the clone",
        Group.FILES,
        'os.link(S["secret_files"][0], S["clone"] + "/hard"); read(S["clone"] + "/hard")',
    ),
    Attempt(
        "rename-out",
        "move a file out of the clone",
        Group.FILES,
        """
        write(S["clone"] + "/mine")
        write(S["outside"] + "/x")
        os.rename(S["clone"] + "/mine", S["outside"] + "/mine")
        """,
    ),
    Attempt(
        "proc-root",
        "reach files through /proc/*/root and /proc/*/cwd",
        Group.FILES,
        """
        places = [p + kind + S["secret_files"][0] for p in glob.glob(S["processes"]) for kind in ("/root", "/cwd")]
        each(read, *places)
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "dot-dot",
        "leave the clone with ../..",
        Group.FILES,
        'read(S["clone"] + "/../../" + os.path.relpath(S["secret_files"][0], S["home"]))',
    ),
    Attempt(
        "setuid-file",
        "leave a program with the set-user-ID bit in the clone",
        Group.FILES,
        """
        path = S["clone"] + "/setuid"
        open(path, "x").close()
        os.chmod(path, 0o4755)
        """,
        only=("bwrap", "docker", "podman"),
        why_only="files inside do not belong to a privileged user",
    ),
)

GIT = (
    Attempt(
        "git-config",
        "change the user's .git/config",
        Group.GIT,
        'write(S["checkout"] + "/.git/config", "[x]\\ny = z\\n")',
    ),
    Attempt(
        "git-hook",
        "plant a hook in the user's repository",
        Group.GIT,
        'write(S["checkout"] + "/.git/hooks/pre-commit")',
    ),
    Attempt(
        "git-branch",
        "move a branch of the user",
        Group.GIT,
        """
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=S["clone"], capture_output=True).stdout.strip()
        command = ["git", "-C", S["checkout"], "update-ref", "refs/heads/main", head]
        done = subprocess.run(command, capture_output=True, text=True)
        end(0 if done.returncode == 0 else 10, done.stderr.strip())
        """,
    ),
    Attempt(
        "git-secret", "read a file that git ignores in the user's checkout", Group.GIT, 'read(S["checkout"] + "/.env")'
    ),
    Attempt(
        "git-alternates",
        "read the user's commits through alternates of the clone",
        Group.GIT,
        """
        write(S["clone"] + "/.git/objects/info/alternates", S["checkout"] + "/.git/objects\\n")
        command = ["git", "cat-file", "--batch-all-objects", "--batch"]
        done = subprocess.run(command, cwd=S["clone"], capture_output=True)
        end(0 if TOKEN.encode() in done.stdout else 10, done.stderr.decode().strip())
        """,
    ),
    Attempt(
        "git-remote",
        "push from the clone into the user's repository",
        Group.GIT,
        """
        command = ["git", "push", "-q", S["checkout"], "HEAD:refs/heads/planted"]
        done = subprocess.run(command, cwd=S["clone"], capture_output=True, text=True)
        end(0 if done.returncode == 0 else 10, done.stderr.strip())
        """,
    ),
)
