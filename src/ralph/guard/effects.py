"""What commands do to files, in any program: read, write, delete, move. Each act is judged by the path's place."""

from ralph.guard import paths as at
from ralph.guard.paths import Place, normal
from ralph.guard.secrets import is_private_key, is_secret_file
from ralph.guard.state import Shell
from ralph.guard.taint import NETWORK, OPAQUE, OUTPUT, PARENT, SECRET, UNKNOWN, is_known, is_mark

_ELSEWHERE = {
    at.RIGHTS: ("privilege", "This changes privileges on this machine"),
    at.STARTUP: ("persistence", "This changes what starts, or who can log in, after this session"),
    at.HISTORY: ("audit", "This changes a history file"),
    at.LOG: ("audit", "This changes a system log"),
    at.OWN: ("tampering", "This changes Ralph's files or the agent's own settings"),
    at.GIT_HOOK: ("tampering", "This changes git's hooks or configuration directly"),
    at.DEVICE: ("devices", "This writes to a device"),
    at.KERNEL: ("system", "This changes the running kernel"),
}
_HARMLESS_NAMES = ("TMP", "TEMP", "CACHE", "BUILD", "DIST", "OUT", "TARGET", "COVERAGE", "SCRATCH", "TEST", "WORK")


def delete(shell: Shell, path: str, argv: list[str], recursive: bool) -> None:
    place = shell.places.on_disk(shell.locate(_linked(shell, path)), follow=path.endswith("/"))
    kind = place.kind
    if kind in (at.NOTHING, at.INSIDE, at.TEMP, at.NULL):
        return
    if kind in _ELSEWHERE and kind not in (at.RIGHTS, at.STARTUP):
        shell.deny(*_ELSEWHERE[kind], argv)
    elif kind == at.ROOT:
        shell.deny("destruction", f"This deletes {_called(place)} and everything in it", argv)
    elif kind == at.ALL:
        shell.deny("destruction", "This deletes everything in the workspace", argv)
    elif kind == at.GIT:
        shell.deny("destruction", "This deletes from the .git folder", argv)
    elif kind == at.TEMP_ROOT:
        if recursive or "*" in path:
            shell.deny("destruction", "This deletes all temporary files, not only yours", argv)
    elif kind == at.MAYBE_ROOT:
        shell.deny("destruction", "If the variable is empty, this deletes from the root of the filesystem", argv)
    elif kind == at.UNSURE:
        _delete_unknown(shell, path, argv, recursive)
    else:
        shell.deny("destruction", f"This deletes {_called(place)}, outside the workspace", argv)


def _delete_unknown(shell: Shell, path: str, argv: list[str], recursive: bool) -> None:
    if recursive and (OPAQUE in path or NETWORK in path):
        shell.deny("opaque", "The guard cannot see what this deletes", argv)
    if not recursive or not path or not is_mark(path[0]):
        return
    names = ["(…)"] if path[0] == OUTPUT else shell.names.names_in(path[0])
    is_all_variable = not "".join(letter for letter in path if not is_mark(letter)).strip("/*")
    if names and is_all_variable and not any(word in names[0].upper() for word in _HARMLESS_NAMES):
        shell.deny("destruction", f"This deletes ${names[0]}, which the command does not set", argv)


def write(shell: Shell, path: str, argv: list[str], appends: bool = False) -> None:
    """Overwrite a file, append to one, or create one (`appends`)."""
    place = shell.places.on_disk(shell.locate(_linked(shell, path)))
    kind = place.kind
    if kind in (at.INSIDE, at.TEMP, at.NULL, at.NOTHING, at.UNSURE, at.ALL, at.TEMP_ROOT):
        return
    if kind == at.ROOT and _is_workspace(shell, place):
        return
    if kind in _ELSEWHERE:
        shell.deny(*_ELSEWHERE[kind], argv)
    elif kind == at.GIT:
        shell.deny("destruction", "This writes into the .git folder", argv)
    elif kind == at.MAYBE_ROOT:
        shell.deny("destruction", "If the variable is empty, this writes to a system folder", argv)
    elif kind == at.SYSTEM or not appends:
        shell.deny("destruction", f"This writes to {_called(place)}, outside the workspace", argv)
    else:
        shell.deny("outside", f"This writes to {_called(place)}, outside the workspace", argv)


def make_folder(shell: Shell, path: str, argv: list[str]) -> None:
    """Create a folder. One that contains the workspace already exists."""
    if shell.locate(path).kind != at.ROOT:
        write(shell, path, argv, appends=True)


def change(shell: Shell, path: str, argv: list[str], what: str, whole: bool) -> None:
    """Change modes or owners. `whole`: of a tree, or in a way that breaks one."""
    place = shell.locate(_linked(shell, path))
    kind = place.kind
    if kind in (at.OWN, at.GIT_HOOK):
        shell.deny(*_ELSEWHERE[kind], argv)
    elif kind in (at.ROOT, at.ALL, at.GIT, at.TEMP_ROOT, at.MAYBE_ROOT):
        if whole or not _is_workspace(shell, place):
            shell.deny("permissions", f"This changes {what} of {_called(place)}", argv)
    elif kind not in (at.INSIDE, at.TEMP, at.NOTHING, at.UNSURE, at.NULL):
        shell.deny("permissions", f"This changes {what} of {_called(place)}, outside the workspace", argv)


def move(shell: Shell, path: str, target: str, argv: list[str]) -> None:
    """Move a file away; the target is judged as a write."""
    place = shell.locate(path)
    leaves = shell.locate(target).kind not in (at.INSIDE, at.ROOT, at.ALL)
    if place.kind == at.ALL and not leaves:
        return
    if place.kind == at.INSIDE:
        shell.files.pop(shell.full(path), None)
        return
    delete(shell, path, argv, True)


def look(shell: Shell, path: str, argv: list[str]) -> None:
    """Printing a private key exposes it in the session."""
    path = path.removeprefix("file://")
    if path and not is_mark(path[0]) and is_private_key(shell.full(path)):
        kind = shell.locate(path).kind
        is_own = kind == at.OWN and shell.full(path).startswith(f"{shell.places.workspace}/")
        if not (is_own or kind in (at.INSIDE, at.TEMP, at.UNSURE)) or "/.ssh/" in path:
            shell.deny("exfiltration", "This reads keys, passwords or tokens", argv)


def contents(shell: Shell, path: str) -> str:
    """The content of a file, as far as it is known."""
    if not path:
        return ""
    if (known := shell.files.get(shell.full(path))) is not None:
        return known
    if path.startswith(("/dev/fd/", "/proc/self/fd/")):
        return shell.streams.get(path.rpartition("/")[2], UNKNOWN)
    place = shell.locate(path)
    if place.kind == at.NET:
        return NETWORK
    if place.kind == at.OWN and "pid" in path:
        return PARENT
    if place.kind == at.NULL and not path.endswith(("/tty", "/stdin", "random")):
        return ""
    return UNKNOWN + (SECRET if is_secret(shell, path) else "")


def is_secret(shell: Shell, path: str) -> bool:
    if not path or (is_mark(path[0]) and "/" not in path):
        return False
    return is_secret_file(path if path.startswith("/") else shell.full(path))


def keep(shell: Shell, path: str, text: str, appends: bool = False) -> None:
    """Remember what was written: it may be run later."""
    if not is_known(path) or path.startswith("/dev/"):
        return
    full = shell.full(path)
    shell.files[full] = (shell.files.get(full, "") if appends else "") + text


def redirect(shell: Shell, target: str, op: str, out: str, argv: list[str]) -> None:
    if (listener := shell.listeners.get(target)) is not None:
        from ralph.guard.evaluator import run_apart

        run_apart(shell, listener, out)
        return
    place = shell.locate(target)
    shown = [*argv, op, target]
    if place.kind == at.NET:
        _to_network(shell, place.path, out, argv, shown)
        return
    if place.kind == at.ALL and op == ">":
        shell.deny("destruction", "This empties every file in the workspace", shown)
    write(shell, target, shown, appends=">>" in op)
    if ">>" not in op and argv[:1] == ["git"] and argv[-1].startswith(("HEAD:", "@:")):
        committed = argv[-1].partition(":")[2]  # `git show HEAD:f > f`; relative to the root, unless it starts with ./
        folder = shell.cwd if committed.startswith(("./", "../")) else shell.places.workspace
        if shell.full(target) == normal(f"{folder}/{committed}"):
            shell.deny("git-history", f"This discards uncommitted changes in {target}", shown)
    keep(shell, target, out, appends=">>" in op)


def _to_network(shell: Shell, path: str, out: str, argv: list[str], shown: list[str]) -> None:
    host = path.split("/")[3] if path.count("/") > 2 else ""
    if is_local_host(host):
        return
    if SECRET in out:
        shell.deny("exfiltration", f"This sends secrets to {host}", shown)
    program = argv[0].rpartition("/")[2] if argv else ""
    if program not in ("", "echo", "printf", ":", "true", "timeout", "nc", "{ … }"):
        shell.deny("remote-shell", f"This connects a program to {host}", shown)


def is_local_host(host: str) -> bool:
    host = host.strip("[]").lower()
    return (
        host in ("localhost", "0.0.0.0", "::1", "host.docker.internal", "127.1")
        or host.startswith("127.")
        or host.endswith(".localhost")
    )


def _linked(shell: Shell, path: str) -> str:
    """Resolve a link that the command itself made."""
    if not shell.files or not is_known(path):
        return path
    full = shell.full(path)
    for link, text in shell.files.items():
        if (
            text.startswith("link:")
            and (full == link or full.startswith(link + "/"))
            and (full != link or path.endswith("/"))
        ):
            return text[5:] + full[len(link) :]
    return path


def _is_workspace(shell: Shell, place: Place) -> bool:
    return place.path == shell.places.workspace or place.kind == at.ALL


def _called(place: Place) -> str:
    return "the whole filesystem" if place.path == "/" else place.path
