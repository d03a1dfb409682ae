"""What the output of a command says about tests: whether any ran, whether they failed, and the framework.

The command and its output are read together: a summary in the output of `grep` or `git log` is not this command's,
and `pytest | tail` hides the exit code.
"""

_COMMANDS = (
    "test spec jest mocha bats check tox nox prove phpunit verify pest rake ava tap karma jasmine cypress cucumber "
    "behave behat robot trial nose ginkgo e2e busted uvu kaocha coverage tarpaulin llvm-cov coveralls newman wdio npm "
    "pnpm eunit paratest ptw pabot surefire codecept tdd rebar3 molecule inspec wtr qunit scan midje hurl stestr dbt"
)
_TELLING = ("test", "Test", "pass", "PASS", "failed", "failure", "FAIL", "not ok", "example", "scenario", "ok 1")
"""An output without any of these says nothing about tests."""


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
    lowered = command.lower()
    is_telling = any(word in output for word in _TELLING)
    if not is_telling and not any(word in lowered for word in _COMMANDS.split()):
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


def _reported(output: str, code: int | None) -> tuple[int | None, str]:
    """A client that reports a failure to the hook puts the exit code on the first line of the output."""
    if not output.startswith("Exit code "):
        return code, output
    line, _, rest = output.partition("\n")
    number = line[len("Exit code ") :].strip()
    return (int(number), rest) if number.isdigit() and len(number) < 4 else (code, output)
