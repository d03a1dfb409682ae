"""Programs that delete, overwrite, move and copy files."""

from ralph.hooks.guard import acts
from ralph.hooks.guard import places as at
from ralph.hooks.guard.acts import contents, keep
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, OPAQUE, SECRET, is_known, taints
from ralph.hooks.guard.wordlist import one_of


def remove(call: Invocation) -> str:
    options = call.options()
    recursive = call.name in ("rimraf", "trash", "srm", "grimraf") or options.has("-r", "-R", "--recursive", "-d")
    for path in options.rest:
        if _is_drive(path):
            call.deny("destruction", "This deletes from a drive")
        acts.delete(call.shell, path, call.argv, recursive)
        call.shell.files.pop(call.shell.full(path), None) if is_known(path) else None
    return ""


def remove_folder(call: Invocation) -> str:
    for path in call.options().rest:
        if call.shell.locate(path).kind != at.ROOT:  # not empty: it stays
            acts.delete(call.shell, path, call.argv, False)
    return ""


def shred(call: Invocation) -> str:
    for path in call.options(valued="ns").rest:
        acts.delete(call.shell, path, call.argv, True)
    return ""


def windows_delete(call: Invocation) -> str:
    args = [arg.lower() for arg in call.args]
    deep = any(arg in ("/s", "/q", "-recurse", "-r", "-force", "-rf") for arg in args)
    for arg in call.args:
        if _is_drive(arg) or (deep and arg in ("*", "/", "~", "$HOME", "%USERPROFILE%", "\\")):
            call.deny("destruction", f"This deletes {arg}")
        elif not arg.startswith(("/", "-")) or arg.count("/") > 1:
            acts.delete(call.shell, arg.replace("\\", "/"), call.argv, deep)
    return ""


def _is_drive(path: str) -> bool:
    return len(path) > 1 and path[1] == ":" and path[0].isalpha() and (len(path) == 2 or path[2] in "\\/")


def move(call: Invocation) -> str:
    options = call.options(valued="tS", valued_long=("--target-directory", "--suffix"))
    target = options.value("-t", "--target-directory")
    sources = options.rest if target else options.rest[:-1]
    if target is None:
        target = options.rest[-1] if len(options.rest) > 1 else ""
    for path in sources:
        text = call.shell.files.get(call.shell.full(path)) if is_known(path) else None
        acts.move(call.shell, path, target, call.argv)
        _arrive(call, target, path, text)
    if target:
        acts.write(call.shell, target, call.argv)
    return ""


def _arrive(call: Invocation, target: str, path: str, text: str | None) -> None:
    """Content that is known or secret stays so under the new name; so does a program."""
    acts.look(call.shell, path, call.argv)
    if path.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/")):
        text = "program:" + path.rpartition("/")[2]
    if text is None:
        text = SECRET if acts.is_secret(call.shell, path) else ""
    if text and is_known(target) and is_known(path):
        keep(call.shell, target, text)
        keep(call.shell, f"{target.rstrip('/')}/{path.rstrip('/').rpartition('/')[2]}", text)


def copy(call: Invocation) -> str:
    options = call.options(valued="tSmog", valued_long=("--target-directory", "--suffix", "--mode", "--owner"))
    target = options.value("-t", "--target-directory")
    sources = options.rest if target else options.rest[:-1]
    if call.name == "install" and options.has("-d", "--directory"):
        return make_folder(call)
    if target is None:
        target = options.rest[-1] if len(options.rest) > 1 else ""
    if target:
        acts.write(call.shell, target, call.argv)
    for path in sources:
        _arrive(call, target, path, call.shell.files.get(call.shell.full(path)) if is_known(path) else None)
    return ""


def link(call: Invocation) -> str:
    options = call.options(valued="tS")
    if len(options.rest) > 1:
        source, target = options.rest[0], options.rest[-1]
        acts.write(call.shell, target, call.argv)
        if is_known(target) and is_known(source):
            _arrive(call, target, source, None)
            kind = call.shell.locate(source).kind
            if kind not in (at.INSIDE, at.TEMP) and "/bin/" not in source:
                keep(call.shell, target, "link:" + call.shell.full(source))
    return ""


def truncate(call: Invocation) -> str:
    for path in call.options(valued="sr", valued_long=("--size", "--reference")).rest:
        acts.write(call.shell, path, call.argv)
    return ""


def touch(call: Invocation) -> str:
    for path in call.options(valued="drt").rest:
        acts.write(call.shell, path, call.argv, appends=True)
    return ""


def make_folder(call: Invocation) -> str:
    """mkdir, mkfifo, install -d."""
    for path in call.options(valued="mogS", valued_long=("--mode", "--owner", "--group")).rest:
        acts.make_folder(call.shell, path, call.argv)
    return ""


def dd(call: Invocation) -> str:
    given = dict(arg.split("=", 1) for arg in call.args if "=" in arg)
    source, target = given.get("if", ""), given.get("of", "")
    if source and call.shell.locate(source).kind == at.DEVICE:
        call.deny("devices", f"This reads the raw device {source}")
    data = contents(call.shell, source) if source else call.stdin
    if not target:
        return data
    acts.write(call.shell, target, call.argv)
    keep(call.shell, target, data)
    return ""


def make_node(call: Invocation) -> str:
    rest = call.options(valued="mZ").rest
    if len(rest) > 1 and rest[1] in ("b", "c", "u"):
        call.deny("devices", "This creates a device")
    return ""


def sponge(call: Invocation) -> str:
    for path in call.options().rest:
        acts.write(call.shell, path, call.argv)
        keep(call.shell, path, call.stdin)
    return ""


def synchronise(call: Invocation) -> str:
    """rsync."""
    valued = ("--rsh", "--exclude", "--include", "--exclude-from", "--rsync-path", "--files-from", "--password-file")
    options = call.options(valued="eBTMf", valued_long=valued)
    if options.has("-n", "--dry-run"):
        return ""
    for command in options.all("-e", "--rsh", "--rsync-path"):
        if not command.startswith("ssh"):
            call.run_text(command)
    if len(options.rest) < 2:
        return ""
    sources, target = options.rest[:-1], options.rest[-1]
    deletes = any(flag.startswith("--del") for flag in options.flags)
    if _is_remote(target):
        from ralph.hooks.guard.programs.network import judge_upload

        judge_upload(call, sources, target)
        if deletes:
            call.deny("destruction", f"This deletes files on {target.split(':')[0]}")
        return ""
    if deletes:
        acts.delete(call.shell, target, call.argv, True)
    acts.write(call.shell, target, call.argv)
    if options.has("--remove-source-files"):
        for path in sources:
            acts.delete(call.shell, path, call.argv, True)
    return ""


def _is_remote(path: str) -> bool:
    head, colon, _ = path.partition(":")
    return bool(colon) and "/" not in head


def archive(call: Invocation) -> str:
    """tar."""
    args = list(call.args)
    if args and not args[0].startswith("-") and is_known(args[0]):
        args[0] = "-" + args[0]
    from ralph.hooks.guard.options import Options

    valued = (
        "--directory",
        "--file",
        "--exclude",
        "--transform",
        "--to-command",
        "--checkpoint-action",
        "--files-from",
    )
    programs = ("--use-compress-program", "--rsh-command", "--info-script", "--new-volume-script", "--checkpoint")
    options = Options(args, "fCTXIFbHgKLNV", valued + programs)
    for name, value in options.values:
        if name == "--checkpoint-action":
            call.run_text(value.partition("exec=")[2]) if value.startswith("exec=") else None
        elif name in ("--to-command", "--use-compress-program", "-I", "--info-script", "-F", "--rsh-command"):
            call.run_text(value)
    folder = options.value("-C", "--directory") or ""
    target = options.value("-f", "--file") or "-"
    if options.has("-x", "--extract", "--get"):
        if folder:
            acts.write(call.shell, folder, call.argv)
        if options.has("-P", "--absolute-names"):
            call.deny("destruction", "This extracts to absolute paths")
        return OPAQUE if options.has("-O", "--to-stdout") else ""
    if not options.has("-c", "--create", "-r", "-u"):
        return call.output()
    paths = [f"{folder}/{path}" if folder and not path.startswith("/") else path for path in options.rest]
    found = "".join(_content_marks(call, path) for path in paths)
    if options.has("--remove-files"):
        for path in paths:
            acts.delete(call.shell, path, call.argv, True)
    if target == "-":
        return found + LOCAL
    acts.write(call.shell, target, call.argv)
    keep(call.shell, target, found)
    return ""


def _content_marks(call: Invocation, path: str) -> str:
    """An archive of a home folder, or of anything with keys in it, is secret."""
    if acts.is_secret(call.shell, path) or call.shell.full(path) == call.shell.places.home:
        return SECRET
    return taints(call.shell.files.get(call.shell.full(path), "")) if is_known(path) else ""


def zip_files(call: Invocation) -> str:
    options = call.options(valued="btdiPx", valued_long=("--unzip-command", "-TT"))
    for command in options.all("--unzip-command", "-TT"):
        call.run_text(command)
    if not options.rest:
        return ""
    target, paths = options.rest[0], options.rest[1:]
    if target == "-":
        return LOCAL + "".join(_content_marks(call, path) for path in paths)
    acts.write(call.shell, target, call.argv)
    if options.has("-m", "--move"):
        for path in paths:
            acts.delete(call.shell, path, call.argv, True)
    keep(call.shell, target, "".join(_content_marks(call, path) for path in paths))
    return ""


def unzip(call: Invocation) -> str:
    options = call.options(valued="dPx")
    if folder := options.value("-d"):
        acts.write(call.shell, folder, call.argv)
    return OPAQUE if options.has("-p", "-c") else ""


def seven_zip(call: Invocation) -> str:
    for arg in call.args:
        if arg.startswith("-o") and len(arg) > 2:
            acts.write(call.shell, arg[2:], call.argv)
    return ""


def desktop(call: Invocation) -> str:
    """gio: its file commands."""
    words = call.options().rest
    if words[:1] and words[0] in ("trash", "remove", "move"):
        for path in words[1:]:
            acts.delete(call.shell, path, call.argv, True)
    return ""


JUDGES = {
    "7z": seven_zip,
    "7za": seven_zip,
    "gio": desktop,
    **dict.fromkeys(one_of("rm grm srm rimraf trash trash-put del-cli unlink wipe"), remove),
    "rmdir": remove_folder,
    "shred": shred,
    "gshred": shred,
    **dict.fromkeys(one_of("del erase rd Remove-Item ri"), windows_delete),
    "mv": move,
    "gmv": move,
    "cp": copy,
    "gcp": copy,
    "install": copy,
    "ditto": copy,
    "ln": link,
    "truncate": truncate,
    "fallocate": truncate,
    "touch": touch,
    "mkdir": make_folder,
    "mkfifo": make_folder,
    "dd": dd,
    "gdd": dd,
    "dcfldd": dd,
    "mknod": make_node,
    "sponge": sponge,
    "rsync": synchronise,
    "tar": archive,
    "gtar": archive,
    "bsdtar": archive,
    "zip": zip_files,
    "unzip": unzip,
}
