"""find, fd and xargs: they run or delete something for each file."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.globs import takes_everything
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, OUTPUT, UNKNOWN, is_known
from ralph.hooks.guard.options import Options

_NAMES = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname", "-inum", "-samefile")
_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_MOST_ITEMS = 40
_MOST_LINES = 8


def find(call: Invocation) -> str:
    args = call.args
    while args and (args[0] in ("-H", "-L", "-P") or args[0].startswith(("-D", "-O"))):
        args = args[2:] if args[0] == "-D" else args[1:]
    roots: list[str] = []
    while args and not args[0].startswith("-") and args[0] not in ("(", "!", ")", ","):
        roots.append(args[0])
        args = args[1:]
    search = _Search(roots or ["."], args)
    for path in search.written:
        acts.write(call.shell, path, call.argv)
    for root in search.roots:
        for command, names in search.acts:
            for found in _all_found(root, names):
                if not command:
                    acts.delete(call.shell, found if names else root, call.argv, True)
                else:
                    call.run([arg.replace("{}", found) for arg in command])
    return "".join(_found(root, search.names) + "\n" for root in search.roots)


class _Search:
    def __init__(self, roots: list[str], args: list[str]) -> None:
        self.roots = roots
        self.names: list[str] = []
        """Name patterns that narrow the search: without one, everything matches."""
        self.acts: list[tuple[list[str], list[str]]] = []
        """The command to run, and the names it applies to. No command: the files are deleted."""
        self.written: list[str] = []
        negated = False
        depth = i = 0
        while i < len(args):
            arg = args[i]
            i += 1
            if arg in ("!", "-not"):
                negated = True
                continue
            depth += (arg == "(") - (arg == ")")
            if arg in _NAMES and i < len(args):
                if not negated and not takes_everything(args[i].rpartition("/")[2]):
                    self.names.append(args[i])
                i += 1
            elif arg == "-empty" and not negated:
                self.names.append(LOCAL)
            elif arg in _RUNS:
                i = self._command(args, i)
            elif arg in ("-o", "-or", ",") and depth == 0:
                self.names = []  # what follows is about all the others
            elif arg == "-delete":
                self.acts.append(([], self.names))
            elif arg in ("-fprint", "-fprintf", "-fls", "-fprint0") and i < len(args):
                self.written.append(args[i])
            negated = False

    def _command(self, args: list[str], start: int) -> int:
        stop = start
        while stop < len(args) and args[stop] != ";" and not (args[stop] == "+" and args[stop - 1] == "{}"):
            stop += 1
        self.acts.append((args[start:stop], self.names))
        return stop + 1


def _all_found(root: str, names: list[str]) -> list[str]:
    """Each name may be in the folder itself, or deeper."""
    known = [name.strip("*").strip("/") for name in names if is_known(name)]
    return [_found(root, names), *[f"{root.rstrip('/')}/{name}" for name in known if name]]


def _found(root: str, names: list[str]) -> str:
    """A path that stands for the matches below a folder."""
    root = root.rstrip("/")
    if not names:
        return f"{root}/*"
    name = names[0].rpartition("/")[2].strip("*") or names[0].strip("*/").rpartition("/")[2]
    return f"{root}/{LOCAL}/{name or LOCAL}"


def fd(call: Invocation) -> str:
    args = call.args
    at = next((i for i, arg in enumerate(args) if arg in ("-x", "-X", "--exec", "--exec-batch")), len(args))
    options = Options(args[:at], "edtEcS", ("--extension", "--type", "--exclude", "--max-depth"))
    pattern, roots = (options.rest[0] if options.rest else "."), options.rest[1:] or ["."]
    narrowed = options.has("-e", "--extension") or not takes_everything(pattern.replace(".", "*"))
    for root in roots:
        found = f"{root}/{LOCAL}" if narrowed else f"{root}/*"
        command = [arg.replace("{}", found) for arg in args[at + 1 :] if arg != ";"]
        if command:
            call.run(command if any("{" in arg for arg in args[at + 1 :]) else [*command, found])
    return "".join(f"{root}/{LOCAL if narrowed else '*'}\n" for root in roots)


def xargs(call: Invocation) -> str:
    options = call.options(
        valued="InPLdEsa", valued_long=("--replace", "--max-args", "--max-procs", "--arg-file"), stops=True
    )
    source = options.value("-a", "--arg-file")
    data = acts.contents(call.shell, source) if source else call.stdin
    command = options.rest or ["echo"]
    mark = options.value("-I", "--replace") or ("{}" if options.has("-i") else "")
    lines = data.strip("\0").split("\0") if "\0" in data else data.splitlines()
    if mark:
        out = ""
        for line in lines[:_MOST_LINES] or [UNKNOWN]:
            out += call.run([arg.replace(mark, line.strip()) for arg in command], "")
        return out
    items = (lines if "\0" in data else _items(data))[:_MOST_ITEMS] or [UNKNOWN]
    is_unknown = any(item[0] in (UNKNOWN, OUTPUT) for item in items if item)
    if is_unknown and command[0].rpartition("/")[2] == "rm" and Options(command[1:]).has("-r", "-R", "--recursive"):
        call.deny("destruction", "This deletes the paths on its stdin, which the guard cannot see")
    return call.run([*command, *items], "")


def _items(data: str) -> list[str]:
    """Split as xargs does: quotes keep their content together."""
    if "'" not in data and '"' not in data:
        return data.split()
    items, current, quote, is_open = [], "", "", False
    for letter in data:
        if quote:
            quote, current = ("", current) if letter == quote else (quote, current + letter)
        elif letter in "'\"":
            quote, is_open = letter, True
        elif letter.isspace():
            items += [current] if current or is_open else []
            current, is_open = "", False
        else:
            current += letter
    return [*items, current] if current or is_open else items


JUDGES = {
    "find": find,
    "gfind": find,
    "fd": fd,
    "fdfind": fd,
    "xargs": xargs,
    "gxargs": xargs,
}
