"""What the output of a command says about tests: whether any ran, whether they failed, and the framework.

The command and its output are read together: a summary in the output of `grep` or `git log` is not this command's,
and `pytest | tail` hides the exit code.
"""

from ralph.hooks.results.kinds import TELLING

_COMMANDS = (
    "test spec jest mocha bats check tox nox prove phpunit verify pest rake ava tap karma jasmine cypress cucumber "
    "behave behat robot trial nose ginkgo e2e busted uvu kaocha coverage tarpaulin llvm-cov coveralls newman wdio npm "
    "pnpm eunit paratest ptw pabot surefire codecept tdd rebar3 molecule inspec wtr qunit scan midje hurl stestr dbt"
)


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
    is_likely = any(word in lowered for word in _COMMANDS.split())
    if not is_likely and not any(word in output for word in TELLING):
        return Found()
    from ralph.hooks.results.verdict import judge

    return Found(*judge(command, output, exit_code))
