"""The simple commands of a command line: how each is joined to the one before, and what `env`, `npx` and so on run."""

from ralph.guard import syntax as sh
from ralph.guard.parser import commands_in, parse
from ralph.guard.tables import PROGRAMS, lines_about, options_of
from ralph.results.vocabulary import ELSEWHERE, base

_MOST_TAILS = 200
_MOST_WRAPPERS = 12
_NO_WRAPPERS = ("awk", "gawk", "mawk", "nawk", "perf")
"""What follows their options is not a command."""
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "ksh", "ash", "busybox", "fish"])


class Part:
    """One simple command."""

    __slots__ = ("framework", "in_loop", "is_negated", "joint", "role", "words")

    def __init__(self, joint: str, words: list[str], in_loop: bool = False, is_negated: bool = False) -> None:
        self.joint = joint
        """How it is joined to the part before: `&&`, `||`, `;`, `|`, `&`, or `$` inside a substitution."""
        self.words, self.in_loop, self.is_negated = words, in_loop, is_negated
        self.role = self.framework = ""


def split(command: str) -> list[Part]:
    """The parts in order. Those of a substitution come before the part that contains it, and `if T; then A; else B; fi`
    reads as `T && A || B`."""
    try:
        return _script(parse(command), ";", False)
    except sh.Unreadable:
        for operator in ("&&", "||", "|", "\n"):
            command = command.replace(operator, ";")
        return [Part(";", words) for text in command.split(";") if (words := text.split())]


def _script(script: sh.Script, joint: str, in_loop: bool) -> list[Part]:
    """`joint`: of the first statement."""
    found: list[Part] = []
    for node in script:
        parts = _node(node, node.joint if found else joint, in_loop)
        if node.is_negated and parts:
            next((part for part in parts if part.joint != "$"), parts[0]).is_negated = True
        found += parts
    return found


def _node(node: sh.Node, joint: str, in_loop: bool) -> list[Part]:
    if isinstance(node, sh.Simple):
        values = [word for each in node.assigns for word in (each.value, *(each.items or ()))]
        nested = _nested([*values, *node.words, *(each.word for each in node.redirects if each.op != "<<")])
        words = [f"{each.name}={_text(each.value)}" for each in node.assigns]
        words += [_text(word) for word in node.words if not isinstance(word[0], sh.Proc)]
        return [*nested, Part(joint, words, in_loop)] if words else nested
    if isinstance(node, sh.Pipe):
        return [part for i, each in enumerate(node.items) for part in _script([each], "|" if i else joint, in_loop)]
    if isinstance(node, sh.Test):
        return [*_script(node.body, "$", in_loop), Part(joint, ["["], in_loop)]
    if isinstance(node, sh.Group):
        return _script(node.body, joint, in_loop)
    if isinstance(node, sh.Background):
        return _script([node.node], joint, in_loop)
    if isinstance(node, sh.Redirected):
        nested = _nested([each.word for each in node.redirects if each.op != "<<"])
        return [*nested, *_script([node.node], joint, in_loop)]
    if isinstance(node, sh.Branch):
        arms = [_script(arm, "||" if i else "&&", in_loop) for i, arm in enumerate(node.arms)]
        return [*_script(node.always, joint, in_loop), *(part for arm in arms for part in arm)]
    if isinstance(node, sh.Loop):
        first = [*_nested(node.words), Part(joint, ["for"])] if node.name else _script(node.condition, joint, in_loop)
        return [*first, *_script(node.body, ";", True)]
    return _script(node.body, joint, in_loop) if isinstance(node, sh.Function) else []


def _nested(words: list[sh.Word]) -> list[Part]:
    found = [part for word in words for script in commands_in(word) for part in _script(script, "$", False)]
    for part in found:
        part.joint = "$" if part.joint == ";" else part.joint
    return found


def _text(word: sh.Word) -> str:
    """As it is written, nearly: without quotes, and with `$()` in place of commands."""
    out = ""
    for part in word:
        if isinstance(part, sh.Lit):
            out += part.text
        elif isinstance(part, sh.Quoted):
            out += _text(part.parts)
        elif isinstance(part, sh.Var):
            out += f"${{{part.name}[{part.index}]}}" if part.index else f"${part.name}"
        else:
            out += "$(())" if isinstance(part, sh.Sum) else "$()"
    return out


def is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "a").rstrip("+").isalnum() and not name[0].isdigit()


def unwrapped(words: list[str]) -> tuple[list[str], str]:
    """The words of the command itself, and the text of a shell command line if it was one (`bash -c TEXT`)."""
    for _ in range(_MOST_WRAPPERS):
        while words and (is_assignment(words[0]) or words[0].isdigit()):
            words = words[1:]
        name = base(words[0]) if words else ""
        if name == "script" or name in _SHELLS:
            return _script_or_text(words)
        if name == "eval":
            return [], " ".join(words[1:])
        if ELSEWHERE.get(name) and (text := _text_elsewhere(name, words)):
            return [], text
        rest = _wrapped(name, words) if name else None
        if rest is None:
            break
        words = rest
    return words, ""


def _wrapped(name: str, words: list[str]) -> list[str] | None:
    """What a wrapper of the guard's tables runs. None: it is none, or runs nothing."""
    if name in ELSEWHERE:
        return None
    if name in ("coverage", "coverage3"):
        return ["python", *_past_options(words[2:], "", ())] if words[1:2] == ["run"] and len(words) > 2 else None
    for line in lines_about(PROGRAMS["runners"], name)[:1]:
        verbs, letters, *long = line.split()
        return _after_verb(words, verbs.split("|"), letters, tuple(long))
    for line in lines_about(PROGRAMS["wrappers"], name)[:1]:
        skip, letters, *long = line.split()
        return _past_options(_past_options(words[1:], letters, tuple(long))[int(skip) :], letters, tuple(long))
    options = options_of(name)
    if not options or not options[2] or name in _NO_WRAPPERS:
        return None
    return _past_options(words[1:], *options[:2])[name == "flock" :]


def _past_options(words: list[str], letters: str, long: tuple[str, ...]) -> list[str]:
    at = 0
    while at < len(words) and words[at][:1] == "-" and words[at] not in ("-m", "--module"):
        word = words[at]
        at += 1
        if word == "--":
            break
        at += word in long or (len(word) > 1 and word[1] != "-" and word[-1] in letters)
    return words[at:]


def _after_verb(words: list[str], verbs: list[str], letters: str, long: tuple[str, ...]) -> list[str] | None:
    rest = _past_options(words[1:], letters, long)
    if verbs != ["-"]:
        if rest[:1] == [] or rest[0] not in verbs:
            return None
        rest = _past_options(rest[1:], letters, long)
    if rest[:1] in (["-m"], ["--module"]):  # `uv run -m pytest` and `pdm run -m pytest` run the module
        return ["python", "-m", *rest[1:]]
    # A script of the project, not the shell's own `test`.
    return ["run-script", *rest] if rest and rest[0].startswith("test") else rest


def _script_or_text(words: list[str]) -> tuple[list[str], str]:
    """For a shell: the text of `-c`, else the script it runs."""
    for at, word in enumerate(words[1:], 1):
        if word == "--command" or (word[:1] == "-" and word[:2] != "--" and "c" in word):
            return [], words[at + 1] if at + 1 < len(words) else ""
        before = words[at - 1]
        if not word.startswith(("-", "+")) and not (before[:1] in ("-", "+") and before[-1] in "oO"):
            return words[at:], ""
    return [], ""


def _text_elsewhere(name: str, words: list[str]) -> str:
    if " " in words[-1] and (name == "ssh" or any(word[:1] == "-" and "c" in word for word in words[-2:-1])):
        return words[-1]
    if name not in ("nix-shell", "vagrant", "lando"):
        return ""
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--run", "-c")), "")


def tails_elsewhere(words: list[str]) -> list[list[str]]:
    """For a program that runs commands elsewhere: every tail of its words that may be the command."""
    verbs = ELSEWHERE.get(base(words[0]))
    if not verbs or (verbs != ["*"] and not any(word in verbs for word in words[1:6])):
        return []
    starts = [at for at in range(1, len(words)) if not words[at].startswith("-")]
    return [words[at:] for at in starts[:_MOST_TAILS]]
