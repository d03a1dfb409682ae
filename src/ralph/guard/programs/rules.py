"""Programs that are judged by the lines of `rules.txt`, and programs that nobody knows."""

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.effects import is_secret
from ralph.guard.invocation import Invocation, Options, is_switched_off, parse_options
from ralph.guard.patterns import matches
from ralph.guard.state import Shell
from ralph.guard.tables import JUDGES, PROGRAMS, lines_about, load, options_of
from ralph.guard.taint import NETWORK, SECRET, UNKNOWN, is_known

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from collections.abc import Callable

_EFFECTS: "dict[str, Callable[[Shell, str, list[str]], None]]" = {
    "delete": lambda shell, path, argv: effects.delete(shell, path, argv, recursive=True),
    "write": effects.write,
    "append": lambda shell, path, argv: effects.write(shell, path, argv, appends=True),
    "folder": effects.make_folder,
}
RULES = load("rules")
"""Category → the lines of its rules."""
_RUNS, _WRITES, _PATHS = (RULES.pop(name) for name in ("runs", "writes", "effects"))
_OTHERS = options_of("*") or ("", (), False)
_RUNS_PACKAGE = ("exec", "x", "dlx", "explore")


def rules_of(program: str) -> "list[tuple[str, str, list[str]]]":
    """Category, message and conditions of each rule."""
    found = [(each, line.partition(": ")) for each, text in RULES.items() for line in lines_about(text, program)]
    return [(each, message.strip(), conditions.split()) for each, (conditions, _, message) in found]


def prints_secrets(call: Invocation) -> bool:
    """Whether a line of [prints] fits."""
    options = (
        parse_options(call.name, call.args) if options_of(call.name) else Options(call.args, _OTHERS[0], _OTHERS[1])
    )
    return any(
        _fits([each for each in line.split() if each[0] not in "+!"], options.rest, call.args)
        and all(_holds(call, each, call.args, options.rest, None) for each in line.split() if each[0] in "+!")
        for line in lines_about(PROGRAMS["prints"], call.name)
    )


def apply_rules(call: Invocation, program: str, args: list[str]) -> Options:
    """Denies what a rule of this program denies, and follows what its options run and write."""
    letters, long, stops = options_of(program) or _OTHERS
    options = Options(args, letters, _OTHERS[1] if long == ("*",) else long, stops)
    is_parsed = options_of(program) is not None
    options.shortest = 2 if program.startswith("git-") else 4
    call.run_texts(*options.all(*"|".join(lines_about(_RUNS, program)).split("|")))
    call.write(*options.all(*"|".join(lines_about(_WRITES, program)).split("|")))
    words = options.rest[1:] if options.rest[:1] and options.rest[0].startswith("+") else options.rest  # cargo +nightly
    for *first, effect in map(str.split, lines_about(_PATHS, program)):
        for path in words[len(first) :] if _fits(first, words, args) else ():
            _EFFECTS[effect](call.shell, path, call.argv)
    for category, message, conditions in rules_of(program):
        others = [each for each in conditions if each[0] in "+!~" or each in ("@", "@1")]
        if _fits([each for each in conditions if each not in others], words, args) and all(
            _holds(call, each, args, words, options if is_parsed else None) for each in others
        ):
            call.deny(category, message)
    return options


def _holds(call: Invocation, condition: str, args: list[str], words: list[str], options: Options | None) -> bool:
    kind, alternatives = condition[0], condition[1:].split("|")
    if kind == "~":
        return any(_one(condition[1:], word.rpartition(":")[2]) or _one(condition[1:], word) for word in words)
    if kind == "@":
        paths = [word for word in (words[:1] if alternatives == ["1"] else words) if not word.isdigit()]
        return not paths or any(call.shell.locate(path).kind not in (at.INSIDE, at.TEMP) for path in paths)
    if kind == "!" and is_switched_off(args, alternatives):
        return True
    return any(_given(each, args, options) for each in alternatives) is (kind == "+")


def _given(word: str, args: list[str], options: Options | None) -> bool:
    if options and word[0] == "-" and "*" not in word and "=" not in word:
        return options.has(word)
    if "*" in word:
        return any(matches(word, arg) or matches(word, arg.lower()) for arg in args)
    return any(arg == word or arg.startswith(word + "=") or arg.lower() == word for arg in args)


def _fits(pattern: list[str], words: list[str], args: list[str]) -> bool:
    if not pattern:
        return True
    first, rest = pattern[0], pattern[1:]
    if first == "...":
        return not rest or any(_fits(rest, words[i:], args) for i in range(len(words) + 1))
    if first.startswith("^"):
        named = args if "|-" in first else words
        return bool(named) and not _one(first[1:], named[0]) and _fits(rest, words[1:], args)
    return bool(words) and _one(first, words[0]) and _fits(rest, words[1:], args)


def _one(pattern: str, word: str) -> bool:
    return any(matches(each, word) or matches(each, word.lower()) for each in pattern.split("|"))


def judge(call: Invocation) -> str | None:
    name = call.argv[0]
    if name.startswith(("http://", "https://")):
        call.deny("remote-code")
    if not is_known(name):
        return _unknown(call)
    if name.startswith("/etc/init.d/"):
        call.run(["service", call.name, *call.args])
    if call.shell.files and call.shell.files.get(call.shell.full(name)) == NETWORK:
        call.deny("remote-code", "This runs a file that was just downloaded")
    program = "mkfs" if call.name.startswith("mkfs.") else call.name
    words = apply_rules(call, program, call.args).rest
    if words and words[0] in _RUNS_PACKAGE and program in ("npm", "pnpm", "yarn", "bun"):
        return _run_package(call)
    special = _SPECIAL.get(program)
    return special(call, words) if special else None


def _unknown(call: Invocation) -> str | None:
    """`$x …`: the arguments say enough if they belong to something destructive."""
    args = call.args
    if args[:1] == ["push"] or args[:2] == ["reset", "--hard"]:
        return call.run(["git", *args])
    if args[:1] == ["-c"] and len(args) > 1:
        call.run_text(args[1])
    return None


def _run_package(call: Invocation) -> str | None:
    """`npm exec -- tool …`, `yarn dlx tool …`: the tool is what counts."""
    start = next(i for i, arg in enumerate(call.args) if arg in _RUNS_PACKAGE)
    if call.args[start] == "explore":
        return call.run(call.args[call.args.index("--") + 1 :]) if "--" in call.args else None
    options = Options(call.args[start + 1 :], "cp", ("--call", "--package"), stops=True)
    call.run_texts(*options.all("-c", "--call"))
    return call.run(options.rest)


def _node_package(call: Invocation, words: list[str]) -> str | None:
    """`yarn rimraf /` and `pnpm rimraf /` run the program, `yarn test` runs a script of the project."""
    if call.name != "bun" and "-g" in call.args and words[:1] and words[0] in ("root", "prefix", "bin"):
        return "/usr/lib/node_modules\n"
    if call.name == "npm" or not words or words[0] in ("rm", "install", "find", "fd", "xargs"):
        return None
    is_program = JUDGES.get(words[0], "").startswith(("files.", "databases.", "interpreters.")) or rules_of(words[0])
    return call.run(call.args[call.args.index(words[0]) :]) if is_program else None


def _cloud(call: Invocation, words: list[str]) -> str | None:
    """Storage in the cloud: what is read there may be secret, and so may be what is written."""
    text = " ".join(words)
    prints = ("get-secret-value", "print-access-token", "get-access-token", "export-credentials")
    if call.name in ("aws", "gcloud", "az", "gsutil") and any(part in text for part in prints):
        return UNKNOWN + SECRET
    if call.name in ("aws", "gsutil", "s3cmd", "mc") and words and words[0] in ("s3", "cp", "put"):
        _upload(call, words)
    uploads = call.name in ("az", "gcloud", "b2") and {"upload", "copy", "cp", "put", "sync", "create"} & set(words)
    if uploads and any(is_secret(call.shell, arg) for arg in call.args):
        call.deny("exfiltration", "This sends secrets to remote storage")
    return NETWORK + UNKNOWN if call.name in ("aws", "gcloud", "az") and words[:1] == ["s3"] else None


def _upload(call: Invocation, words: list[str]) -> None:
    from ralph.guard.programs.network import judge_upload

    remote = [word for word in words if "://" in word]
    local = [word for word in words[1:] if "://" not in word and word not in ("cp", "mv", "sync", "put")]
    if remote and words[-1] == remote[-1]:
        judge_upload(call, local, remote[-1])
        if "-" in local and SECRET in call.stdin:
            call.deny("exfiltration", f"This sends secrets to {remote[-1]}")


def _ansible(call: Invocation, words: list[str]) -> None:
    from ralph.guard.programs.shells import judge_script

    for text in call.options().all("-a", "--args"):
        judge_script(call.shell.elsewhere(), text, call.argv)


def _system_packages(call: Invocation, words: list[str]) -> None:
    """apt runs what its settings say before and after an installation."""
    if hook := next((arg for arg in call.args if "Pre-Invoke" in arg or "Post-Invoke" in arg), ""):
        call.run_text(hook.partition("=")[2].strip("\"'"))


def _history(call: Invocation, words: list[str]) -> str:
    return UNKNOWN + SECRET  # passwords were typed, too


def _patch(call: Invocation, words: list[str]) -> None:
    if {"-R", "--reverse"} & set(call.args) and f"{UNKNOWN}diff --git" in call.stdin:
        call.deny("git-history", "This discards uncommitted changes")


_SPECIAL = {
    "history": _history,
    "patch": _patch,
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _node_package),
    **dict.fromkeys(("aws", "gcloud", "az", "gsutil", "s3cmd", "mc", "b2"), _cloud),
    **dict.fromkeys(("apt", "apt-get", "aptitude", "dpkg"), _system_packages),
    "ansible": _ansible,
}
