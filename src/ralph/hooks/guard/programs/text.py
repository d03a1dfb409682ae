"""Programs that read and print: harmless themselves, but their output may be run or sent away."""

import binascii

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import (
    EVERYONE,
    LOCAL,
    OPAQUE,
    SECRET,
    UNKNOWN,
    is_known,
    is_secret_name,
    taints,
)
from ralph.hooks.guard.places import normal
from ralph.hooks.guard.programs.broad import is_broad, is_ours
from ralph.hooks.guard.programs.formatting import cut, translated
from ralph.hooks.guard.wordlist import one_of


def cat(call: Invocation) -> str:
    """Also head, tail, sort and others that print part of it, or reorder it: all of it is judged."""
    paths = call.options(valued="ncksStT" if call.name in ("head", "tail", "sort", "less", "fold") else "").rest
    for path in paths:
        acts.look(call.shell, path, call.argv)
    return call.files(paths)


def transform(call: Invocation) -> str:
    """The output differs from the input: what was readable no longer is."""
    paths = [arg for arg in call.args if not arg.startswith("-")]
    for path in paths:
        acts.look(call.shell, path, call.argv)
    return _changed(call.stdin or call.files(paths))


def _changed(data: str) -> str:
    return OPAQUE if data and is_known(data) else UNKNOWN + taints(data)


def base64(call: Invocation) -> str:
    options = call.options(valued="wib")
    for path in options.rest:
        acts.look(call.shell, path, call.argv)
    data = call.files(options.rest or options.all("-i"))
    if not options.has("-d", "-D", "--decode"):
        if not is_known(data):
            return UNKNOWN + taints(data)
        return binascii.b2a_base64(data.encode(), newline=False).decode() + "\n"
    if not is_known(data) or not data:
        return OPAQUE + taints(data)
    if call.name == "base32" or options.has("--base32"):
        return _base32(data)
    return decoded(data)


def decoded(data: str) -> str:
    data = "".join(data.split()).replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(data + "=" * (-len(data) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE


def _base32(data: str) -> str:
    import base64 as coding

    try:
        return coding.b32decode("".join(data.split())).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE


def xxd(call: Invocation) -> str:
    options = call.options(valued="cglos")
    for path in options.rest[:1]:
        acts.look(call.shell, path, call.argv)
    data = call.files(options.rest[:1])
    if not options.has("-r"):
        return UNKNOWN + taints(data)
    if not data or not is_known(data):
        return OPAQUE + taints(data)
    digits = "".join(line.partition(":")[2].strip() if ":" in line else line for line in data.splitlines())
    try:
        return bytes.fromhex("".join(digits.split()).replace("0x", "").replace("\\x", "")).decode("utf-8", "replace")
    except ValueError:
        return OPAQUE


def reverse(call: Invocation) -> str:
    data = call.files(call.options().rest)
    return "\n".join(line[::-1] for line in data.split("\n"))


def translate(call: Invocation) -> str:
    if not is_known(call.stdin):
        return call.stdin if call.stdin.strip(LOCAL + "./* \n") == "" else UNKNOWN + taints(call.stdin)
    return translated(call.stdin, call.args)


def cut_lines(call: Invocation) -> str:
    options = call.options(valued="cdfb")
    data = call.files(options.rest)
    if not is_known(data):
        return UNKNOWN + taints(data)
    return cut(data, options.value("-c", "-b") or "", options.value("-d") or "\t", options.value("-f") or "1-")


def unpack(call: Invocation) -> str:
    """What was compressed or encrypted cannot be read here."""
    unpacks = call.name in ("zcat", "gunzip", "bunzip2", "unxz", "uudecode", "gpg", "bzcat", "xzcat") or any(
        arg in ("-d", "-dc", "-cd", "--decompress", "--decrypt", "-D") or (arg.startswith("-d") and len(arg) < 4)
        for arg in call.args
    )
    if any(arg.startswith("--export-secret") for arg in call.args):
        return UNKNOWN + SECRET
    return (OPAQUE if unpacks else "") + call.output()


def openssl(call: Invocation) -> str:
    words = [arg for arg in call.args if not arg.startswith("-")]
    flags = {arg for arg in call.args if arg.startswith("-")}
    if words[:1] == ["s_client"]:
        from ralph.hooks.guard.programs.sockets import judge_socket

        return judge_socket(call, call.args)
    if "-d" in flags:
        if words[:1] == ["base64"] or (flags & {"-base64", "-a"} and len(flags - {"-base64", "-a", "-d", "-A"}) == 0):
            path = _following(call.args, "-in")
            data = acts.contents(call.shell, path) if path else call.stdin
            return decoded(data) if data and is_known(data) else OPAQUE + taints(data)
        return OPAQUE + taints(call.output())
    return call.output()


def _following(args: list[str], name: str) -> str:
    return args[args.index(name) + 1] if name in args[:-1] else ""


def tee(call: Invocation) -> str:
    options = call.options()
    for path in options.rest:
        acts.redirect(call.shell, path, ">>" if options.has("-a", "--append") else ">", call.stdin, call.argv)
    return call.stdin


def base_name(call: Invocation) -> str:
    rest = call.options(valued="s").rest
    if not rest or not is_known(rest[0]):
        return call.output()
    path = rest[0].rstrip("/")
    if call.name == "dirname":
        return (path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")) + "\n"
    name = path.rpartition("/")[2]
    return (name.removesuffix(rest[1]) if len(rest) > 1 else name) + "\n"


def working_folder(call: Invocation) -> str:
    return call.shell.cwd + "\n"


def real_path(call: Invocation) -> str:
    rest = call.options(valued="").rest
    if not rest or not is_known(rest[0]) or not call.shell.cwd.startswith("/"):
        return call.output()
    return normal(rest[0] if rest[0].startswith("/") else f"{call.shell.cwd}/{rest[0]}") + "\n"


def make_temp(call: Invocation) -> str:
    options = call.options(valued="p", valued_long=("--tmpdir", "--suffix"))
    folder = options.value("-p", "--tmpdir")
    name = options.rest[0] if options.rest else "tmp.0123456789"
    if "/" in name:
        return name + "\n"
    if folder or not options.rest or options.has("-t"):
        return f"{folder or '/tmp'}/{name}\n"
    return f"./{name}\n"


def which(call: Invocation) -> str:
    rest = call.options().rest
    return "".join(f"/usr/bin/{name}\n" for name in rest)


def print_environment(call: Invocation) -> str:
    names = call.options().rest
    if not names:
        return UNKNOWN + SECRET
    return "".join(call.shell.names.mark(name) + (SECRET if is_secret_name(name) else "") for name in names)


def date(call: Invocation) -> str:
    if call.options(valued="dr").has("-s", "--set"):
        call.deny("system", "This sets the clock")
    return "20240101\n"


def sequence(call: Invocation) -> str:
    return "1\n2\n3\n"


def yes(call: Invocation) -> str:
    return (" ".join(call.args) or "y") + "\n"


def json(call: Invocation) -> str:
    if call.name == "yq" and any(arg in ("-i", "--inplace") for arg in call.args):
        acts.write(call.shell, call.args[-1], call.argv)
        return ""
    if "-n" in call.args or "-rn" in call.args or "-nr" in call.args or "--null-input" in call.args:
        return OPAQUE
    return _changed(call.stdin) if call.stdin else call.output()


def list_files(call: Invocation) -> str:
    options = call.options(valued="ITw")
    if not options.rest:
        return "*\n"
    return "".join(f"{path}\n" if "*" in path or options.has("-d") else f"{path}/{LOCAL}\n" for path in options.rest)


def search(call: Invocation) -> str:
    """grep and similar. What they select from a list of names is still names, but no longer all of them."""
    options = call.options(valued="efmABCgtTjdD", valued_long=("--include", "--exclude", "--glob", "--type", "--pre"))
    if program := options.value("--pre"):
        call.run([program, UNKNOWN])
    words = options.rest if options.has("-e", "-f", "--files") else options.rest[1:]
    for path in words:
        acts.look(call.shell, path, call.argv)
    if options.has("--files"):
        return "".join(f"{path}/*\n" for path in words) or "*\n"
    if options.has("-l", "--files-with-matches", "-L"):
        return "".join(f"{path}/{LOCAL}\n" for path in words) or LOCAL
    if words or not call.stdin:
        return call.output()
    if EVERYONE in call.stdin and not options.has("-v", "--invert-match"):
        pattern = options.value("-e") or (options.rest[0] if options.rest else "")
        return EVERYONE if is_broad(pattern) or is_ours(pattern) else UNKNOWN
    if options.has("-o", "--only-matching") and is_known(call.stdin):
        return OPAQUE
    if call.stdin.strip() in ("*", "./*", f"./{LOCAL}") and not options.has("-v", "--invert-match"):
        return LOCAL
    return call.stdin


def plain_output(call: Invocation) -> str | None:
    return None


def processes(call: Invocation) -> str:
    """Which processes: all of them, unless some are named."""
    text = " ".join(call.args)
    if call.name in ("pgrep", "pidof"):
        options = call.options(valued="uUgGPstd")
        if not options.rest and not options.has("-P", "-t"):
            return EVERYONE
        return EVERYONE if any(is_broad(word) or is_ours(word) for word in options.rest) else UNKNOWN
    named = any(flag in text for flag in ("-p", "-C", "--pid", "--ppid"))
    return UNKNOWN if named and "-ep" not in text else EVERYONE


def open_files(call: Invocation) -> str:
    """`lsof -t -i` lists every process with a connection; with a port it is one program."""
    text = " ".join(call.args)
    return UNKNOWN if ":" in text or "-p" in call.args or "+D" in call.args or "-t" not in text else EVERYONE


JUDGES = {
    **dict.fromkeys(one_of("cat tac head tail sort uniq nl fold column paste less more"), cat),
    **dict.fromkeys(one_of("bat batcat strings iconv shuf tsort fmt expand dos2unix hd"), cat),
    **dict.fromkeys(one_of("od hexdump dc bc uniname ascii2uni numfmt factor expr"), transform),
    "base64": base64,
    "base32": base64,
    "basenc": base64,
    "xxd": xxd,
    "rev": reverse,
    "tr": translate,
    "cut": cut_lines,
    **dict.fromkeys(one_of("zcat gunzip gzip bunzip2 bzip2 bzcat xz unxz xzcat zstd lz4"), unpack),
    **dict.fromkeys(one_of("uudecode gpg age sops brotli"), unpack),
    "openssl": openssl,
    "tee": tee,
    "basename": base_name,
    "dirname": base_name,
    "pwd": working_folder,
    "realpath": real_path,
    "readlink": real_path,
    "greadlink": real_path,
    "mktemp": make_temp,
    "which": which,
    "whereis": which,
    "printenv": print_environment,
    "date": date,
    "seq": sequence,
    "yes": yes,
    "jq": json,
    "yq": json,
    "ls": list_files,
    "dir": list_files,
    "tree": list_files,
    "exa": list_files,
    "eza": list_files,
    **dict.fromkeys(one_of("grep egrep fgrep rg ag ack zgrep ugrep"), search),
    "ps": processes,
    "pgrep": processes,
    "pidof": processes,
    "lsof": open_files,
    "wc": plain_output,
}
