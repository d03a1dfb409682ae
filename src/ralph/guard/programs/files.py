"""Programs that delete, overwrite, move and copy files."""

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.effects import contents, keep
from ralph.guard.invocation import Invocation, Options, parse_options
from ralph.guard.patterns import takes_everything
from ralph.guard.taint import LOCAL, OPAQUE, OUTPUT, SECRET, UNKNOWN, is_known, taints

_NONE = ("000", "0", "a-rwx")


def change_mode(call: Invocation) -> str:
    recursive = any(arg == "--recursive" or (arg.startswith("-") and "R" in arg) for arg in call.args)
    words = [
        arg for arg in call.args if not (arg.startswith("--") or (arg.startswith("-") and set(arg[1:]) <= set("Rfvc")))
    ]
    if not words:
        return ""
    mode, paths = words[0], words[1:]
    if _gives_other_rights(mode):
        call.deny("privilege", "This lets a program run with its owner's privileges")
    breaks = _breaks(mode)
    for path in paths:
        if recursive and mode.isdigit() and (len(mode) < 3 or mode[-3] == "0"):
            call.deny("permissions", f"This makes everything below {path} unusable")
        if recursive and breaks and _is_wide(mode):
            call.deny("permissions", f"This makes everything below {path} world-writable")
        effects.change(
            call.shell, path, call.argv, "the permissions", (recursive and breaks) or _is_wide(mode) or mode in _NONE
        )
    return ""


def _gives_other_rights(mode: str) -> bool:
    if mode.isdigit():
        return len(mode) >= 4 and mode[-4] in "2467"
    return any("s" in clause.partition("+")[2] or "s" in clause.partition("=")[2] for clause in mode.split(","))


def _is_wide(mode: str) -> bool:
    if mode.isdigit():
        return mode[-1] in "2367"
    return any(
        clause.startswith(("a+", "o+", "ugo+", "+", "a=", "o=", "ugo=", "go+")) and "w" in clause and clause != "+w"
        for clause in mode.split(",")
    )


def _breaks(mode: str) -> bool:
    """World-writable, or no longer usable by the owner."""
    if not is_known(mode):
        return True
    if mode.isdigit():
        return mode[-1] in "2367" or (len(mode) < 3 or mode[-3] != "7")
    return _is_wide(mode) or any(clause.startswith(("a-", "u-", "-", "ugo-")) for clause in mode.split(","))


def change_owner(call: Invocation) -> str:
    options = call.options()
    for path in options.rest[0 if options.has("--reference") else 1 :]:
        effects.change(call.shell, path, call.argv, "the owner", options.has("-R", "--recursive"))
    return ""


def change_attributes(call: Invocation) -> str:
    """ACLs and immutable files."""
    for path in [arg for arg in call.args if not arg.startswith(("-", "+", "="))][-1:]:
        effects.change(call.shell, path, call.argv, "the attributes", True)
    return ""


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
    call.write(*search.written)
    for root in search.roots:
        for command, names in search.acts:
            for found in _all_found(root, names):
                if not command:
                    effects.delete(call.shell, found if names else root, call.argv, True)
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
    options = call.options()
    source = options.value("-a", "--arg-file")
    call.look(source or "")
    data = effects.contents(call.shell, source) if source else call.stdin
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


def remove(call: Invocation) -> str:
    options = call.options()
    recursive = call.name in ("rimraf", "trash", "srm", "grimraf") or options.has("-r", "-R", "--recursive", "-d")
    for path in options.rest:
        if _is_drive(path):
            call.deny("destruction", "This deletes from a drive")
        effects.delete(call.shell, path, call.argv, recursive)
        call.shell.files.pop(call.shell.full(path), None) if is_known(path) else None
    return ""


def remove_folder(call: Invocation) -> str:
    for path in call.options().rest:
        if call.shell.locate(path).kind != at.ROOT:  # not empty: it stays
            effects.delete(call.shell, path, call.argv, False)
    return ""


def windows_delete(call: Invocation) -> str:
    args = [arg.lower() for arg in call.args]
    deep = any(arg in ("/s", "/q", "-recurse", "-r", "-force", "-rf") for arg in args)
    for arg in call.args:
        if _is_drive(arg) or (deep and arg in ("*", "/", "~", "$HOME", "%USERPROFILE%", "\\")):
            call.deny("destruction", f"This deletes {arg}")
        elif not arg.startswith(("/", "-")) or arg.count("/") > 1:
            effects.delete(call.shell, arg.replace("\\", "/"), call.argv, deep)
    return ""


def _is_drive(path: str) -> bool:
    return len(path) > 1 and path[1] == ":" and path[0].isalpha() and (len(path) == 2 or path[2] in "\\/")


def move(call: Invocation) -> str:
    options = call.options()
    target = options.value("-t", "--target-directory")
    sources = options.rest if target else options.rest[:-1]
    if target is None:
        target = options.rest[-1] if len(options.rest) > 1 else ""
    if target == "/dev/null":
        call.deny("destruction", "This discards what it moves")
    for path in sources:
        text = call.shell.files.get(call.shell.full(path)) if is_known(path) else None
        effects.move(call.shell, path, target, call.argv)
        _arrive(call, target, path, text)
    if target:
        call.write(target)
    return ""


def _arrive(call: Invocation, target: str, path: str, text: str | None) -> None:
    """Content that is known or secret stays so under the new name; so does a program."""
    effects.look(call.shell, path, call.argv)
    if path.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/")):
        text = "program:" + path.rpartition("/")[2]
    if text is None:
        text = SECRET if effects.is_secret(call.shell, path) else ""
    if text and is_known(target) and is_known(path):
        keep(call.shell, target, text)
        keep(call.shell, f"{target.rstrip('/')}/{path.rstrip('/').rpartition('/')[2]}", text)


def copy(call: Invocation) -> str:
    options = call.options()
    target = options.value("-t", "--target-directory")
    sources = options.rest if target else options.rest[:-1]
    if call.name == "install" and options.has("-d", "--directory"):
        for path in options.rest:
            effects.make_folder(call.shell, path, call.argv)
        return ""
    if target is None:
        target = options.rest[-1] if len(options.rest) > 1 else ""
    if target:
        call.write(target)
    for path in sources:
        _arrive(call, target, path, call.shell.files.get(call.shell.full(path)) if is_known(path) else None)
    return ""


def link(call: Invocation) -> str:
    options = call.options()
    if len(options.rest) > 1:
        source, target = options.rest[0], options.rest[-1]
        call.write(target)
        if is_known(target) and is_known(source):
            _arrive(call, target, source, None)
            kind = call.shell.locate(source).kind
            if kind not in (at.INSIDE, at.TEMP) and "/bin/" not in source:
                keep(call.shell, target, "link:" + call.shell.full(source))
    return ""


def dd(call: Invocation) -> str:
    given = dict(arg.split("=", 1) for arg in call.args if "=" in arg)
    source, target = given.get("if", ""), given.get("of", "")
    if source and call.shell.locate(source).kind == at.DEVICE:
        call.deny("devices", f"This reads the raw device {source}")
    data = contents(call.shell, source) if source else call.stdin
    if not target:
        return data
    call.store(target, data)
    return ""


def sponge(call: Invocation) -> str:
    for path in call.options().rest:
        call.store(path, call.stdin)
    return ""


def synchronise(call: Invocation) -> str:
    """rsync."""
    options = call.options()
    if options.is_dry_run:
        return ""
    for command in options.all("-e", "--rsh", "--rsync-path"):
        if not command.startswith("ssh"):
            call.run_text(command)
    if len(options.rest) < 2:
        return ""
    sources, target = options.rest[:-1], options.rest[-1]
    deletes = any(flag.startswith("--del") for flag in options.flags)
    if _is_remote(target):
        from ralph.guard.programs.network import judge_upload

        judge_upload(call, sources, target)
        if deletes:
            call.deny("destruction", f"This deletes files on {target.split(':')[0]}")
        return ""
    call.look(*(path for path in sources if not _is_remote(path)))
    if deletes:
        effects.delete(call.shell, target, call.argv, True)
    call.write(target)
    if options.has("--remove-source-files"):
        call.delete(*sources)
    return ""


def _is_remote(path: str) -> bool:
    head, colon, _ = path.partition(":")
    return bool(colon) and "/" not in head


def archive(call: Invocation) -> str:
    """tar."""
    args = list(call.args)
    if args and not args[0].startswith("-") and is_known(args[0]):
        args[0] = "-" + args[0]
    options = parse_options(call.name, args)
    for name, value in options.values:
        if name == "--checkpoint-action":
            call.run_text(value.partition("exec=")[2]) if value.startswith("exec=") else None
        elif name in ("--to-command", "--use-compress-program", "-I", "--info-script", "-F", "--rsh-command"):
            call.run_text(value)
    folder = options.value("-C", "--directory") or ""
    target = options.value("-f", "--file") or "-"
    if options.has("-x", "--extract", "--get"):
        if folder:
            call.write(folder)
        if options.has("-P", "--absolute-names"):
            call.deny("destruction", "This extracts to absolute paths")
        return OPAQUE if options.has("-O", "--to-stdout") else ""
    if not options.has("-c", "--create", "-r", "-u"):
        return call.output()
    paths = [f"{folder}/{path}" if folder and not path.startswith("/") else path for path in options.rest]
    call.look(*paths)
    found = "".join(_content_marks(call, path) for path in paths)
    if target == "-" and any(call.shell.locate(path).kind in (at.ROOT, at.ALL) for path in paths):
        found += SECRET
    if options.has("--remove-files"):
        call.delete(*paths)
    if target == "-":
        return found + LOCAL
    call.store(target, found)
    return ""


def _content_marks(call: Invocation, path: str) -> str:
    """An archive of a home folder, or of anything with keys in it, is secret."""
    if effects.is_secret(call.shell, path) or call.shell.full(path) == call.shell.places.home:
        return SECRET
    return taints(call.shell.files.get(call.shell.full(path), "")) if is_known(path) else ""


def zip_files(call: Invocation) -> str:
    options = call.options()
    call.run_texts(*options.all("--unzip-command", "-TT"))
    if not options.rest:
        return ""
    target, paths = options.rest[0], options.rest[1:]
    if target == "-":
        whole = any(call.shell.locate(path).kind in (at.ROOT, at.ALL) for path in paths)
        return LOCAL + (SECRET if whole else "") + "".join(_content_marks(call, path) for path in paths)
    call.write(target)
    if options.has("-m", "--move"):
        call.delete(*paths)
    keep(call.shell, target, "".join(_content_marks(call, path) for path in paths))
    return ""


def unzip(call: Invocation) -> str:
    options = call.options()
    call.write(*options.all("-d"))
    return OPAQUE if options.has("-p", "-c") else ""


def seven_zip(call: Invocation) -> str:
    for arg in call.args:
        if arg.startswith("-o") and len(arg) > 2:
            call.write(arg[2:])
    return ""
