"""find, fd and xargs: they run or delete for each file that they come across."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.globs import takes_everything
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, UNKNOWN, is_known
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
        for found in search.all_found(root):
            if search.deletes:
                acts.delete(call.shell, found if search.names else root, call.argv, True)
            for command in search.commands:
                call.run([arg.replace("{}", found) for arg in command])
    return "".join(search.found(root) + "\n" for root in search.roots)


class _Search:
    def __init__(self, roots: list[str], args: list[str]) -> None:
        self.roots = roots
        self.names: list[str] = []
        """What narrows the search: without it, everything is found."""
        self.commands: list[list[str]] = []
        self.written: list[str] = []
        self.deletes = False
        negated = False
        i = 0
        while i < len(args):
            arg = args[i]
            i += 1
            if arg in ("!", "-not"):
                negated = True
                continue
            if arg in _NAMES and i < len(args):
                if not negated and not takes_everything(args[i].rpartition("/")[2]):
                    self.names.append(args[i])
                i += 1
            elif arg == "-empty" and not negated:
                self.names.append(LOCAL)
            elif arg in _RUNS:
                i = self._command(args, i)
            elif arg == "-prune" and i < len(args) and args[i] in ("-o", "-or"):
                self.names = []  # those are left out
            elif arg == "-delete":
                self.deletes = True
            elif arg in ("-fprint", "-fprintf", "-fls", "-fprint0") and i < len(args):
                self.written.append(args[i])
            negated = False

    def _command(self, args: list[str], start: int) -> int:
        stop = start
        while stop < len(args) and args[stop] != ";" and not (args[stop] == "+" and args[stop - 1] == "{}"):
            stop += 1
        self.commands.append(args[start:stop])
        return stop + 1

    def all_found(self, root: str) -> list[str]:
        """Each name may be in the folder itself, or deeper."""
        names = [name.strip("*").strip("/") for name in self.names if is_known(name)]
        return [self.found(root), *[f"{root.rstrip('/')}/{name}" for name in names if name]]

    def found(self, root: str) -> str:
        """A path that stands for what is found below a folder."""
        root = root.rstrip("/") or "/"
        if not self.names:
            return f"{root.rstrip('/')}/*"
        name = self.names[0].rpartition("/")[2].strip("*") or self.names[0].strip("*/").rpartition("/")[2]
        return f"{root.rstrip('/')}/{LOCAL}/{name or LOCAL}"


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
    if options.has("-0", "-d", "--null", "--delimiter"):
        data = data.replace("\0", "\n")
    if mark:
        out = ""
        for line in data.splitlines()[:_MOST_LINES] or [UNKNOWN]:
            out += call.run([arg.replace(mark, line.strip()) for arg in command], "")
        return out
    items = _items(data)[:_MOST_ITEMS] or [UNKNOWN]
    is_unknown = any(item[0] == UNKNOWN for item in items if item)
    if is_unknown and command[0].rpartition("/")[2] == "rm" and Options(command[1:]).has("-r", "-R", "--recursive"):
        call.deny("destruction", "This deletes whatever it is told on its input, which cannot be read here")
    return call.run([*command, *items], "")


def _items(data: str) -> list[str]:
    """Split as xargs does: quotes hold together what they enclose."""
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
