"""What the output of a command says about tests: whether any ran, whether they failed, and the framework.

The command and its output are read together: a summary in the output of `grep` or `git log` is not this command's,
and `pytest | tail` hides the exit code.
"""

_IN_CODE = ("cargo t", "llvm-cov", "careful", "npm", "verify", "surefire", "check", "junit", "dusk")
"""Parts of commands that `languages.py` and `programs.py` take for test runs, and that `words.txt` does not list."""
_TELLING = ("test", "Test", "pass", "PASS", "failed", "failure", "FAIL", "not ok", "example", "scenario", "ok 1")
"""An output without any of these says nothing about tests, unless the command runs them."""


class Found:
    __slots__ = ("failed", "framework", "ran")

    def __init__(self, ran: bool = False, failed: bool = False, framework: str = "") -> None:
        self.ran = ran
        self.failed = failed
        self.framework = framework
        """Empty if no tests ran, or if it is unknown."""

    def __repr__(self) -> str:
        return f"Found(ran={self.ran}, failed={self.failed}, framework={self.framework!r})"


def detect(command: str, output: str, exit_code: int | None = None) -> Found:
    """Most commands are not test runs: the cheap check comes first, and imports nothing."""
    is_telling = any(word in output for word in _TELLING)
    if not is_telling and not may_run_tests(command.lower()):
        return Found()
    from ralph.results.programs import roles
    from ralph.results.vocabulary import PERHAPS, TEST, UNKNOWN

    parts = roles(command)
    wanted = (TEST, PERHAPS, UNKNOWN) if is_telling else (TEST,)
    if not any(part.role in wanted for part in parts) and (command.strip() or not is_telling):
        return Found()
    from ralph.results.weighing import weigh  # with `re` and many patterns: dear, and seldom needed

    exit_code, output = _reported(output, exit_code)
    return Found(*weigh(parts, output, exit_code))


def may_run_tests(command: str) -> bool:
    """Whether it contains a runner, a module or a name from `words.txt`, or a program with one of its subcommands.

    The table is read here without `vocabulary`, whose import takes ten times as long.
    """
    with open(f"{__file__.rpartition('/')[0]}/words.txt", encoding="utf-8") as stream:
        text = "\n".join([line for line in stream.read().lower().split("\n") if line[:1] != "#"])
    tables = dict(section.split("]\n", 1) for section in text.split("\n[")[1:])
    words = [tables["runners"], tables["modules"], tables["names"].partition("no-test:")[0]]
    if any(word in command for word in [*_IN_CODE, *" ".join(words).split()]):
        return True
    rules = [line.split() for line in tables["subcommands"].split("\n") if line]
    return any(
        any(name in command for name in names.split("|")) and any(verb.partition("=")[0] in command for verb in verbs)
        for names, *verbs in rules
    )


def _reported(output: str, code: int | None) -> tuple[int | None, str]:
    """A client that reports a failure to the hook puts the exit code on the first line of the output."""
    if not output.startswith("Exit code "):
        return code, output
    line, _, rest = output.partition("\n")
    number = line[len("Exit code ") :].strip()
    return (int(number), rest) if number.isdigit() and len(number) < 4 else (code, output)
