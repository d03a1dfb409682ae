"""What holds for every test: its own home, no trace left, fast ones first."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase

from support import isolation, tools

ROOT = Path(__file__).resolve().parent.parent
AT_DEFAULTS = (
    "client/",
    "parallel/",
    "proof/",
    "seeds/",
    "config/",
    "test_readme.py",
    "test_demo.py",
    "test_gauntlet.py",
)
MECHANICS = {"RALPH_PROOF_MINIMUM": "unproven", "RALPH_PROOF_WHERE": "in-place", "RALPH_SANDBOX": "none"}

_REAL = isolation.real_places(os.environ)
_numbers = count(1)
_SIGNALS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_watch = pytest.StashKey[isolation.Watch]()

set_hypothesis_home_dir(ROOT / ".hypothesis")
hypothesis.settings.register_profile(
    "ralph",
    deadline=None,  # the machine may be busy; a slow example is no failure
    max_examples=int(os.environ.get("TEST_EXAMPLES", "50")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
)
hypothesis.settings.load_profile("ralph")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing of the developer's own is visible from here on, not even to fixtures of a whole session."""
    for number, handler in _SIGNALS.items():
        if (
            signal.getsignal(number) is signal.SIG_IGN
        ):  # as in a job in the background; whatever a test starts has it too
            signal.signal(number, handler)
    config.stash[_watch] = isolation.Watch(_REAL, isolation.needed_places(ROOT))
    for name in isolation.foreign_variables(os.environ):
        del os.environ[name]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first: a mistake shows early. The longest of the client are not left to the end."""
    slow = tools.slow_tests()

    def order(item: pytest.Item) -> tuple[bool, bool]:
        is_client = item.get_closest_marker("client") is not None
        return is_client, (item.get_closest_marker("slow") is not None) != is_client

    if os.environ.get(tools.QUICK):
        left_out = [item for item in items if item.nodeid.partition("[")[0] in slow]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=order)


def pytest_runtest_setup(item: pytest.Item) -> None:
    tools.require(item)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    missing = tools.missing_tools(terminalreporter.stats.get("skipped", []))
    for tool, skipped in sorted(missing.items()):
        terminalreporter.write_line(f"not tested here: {tool} is not installed ({skipped} tests skipped)")


@pytest.fixture(autouse=True, scope="session")
def _session_home(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[None]:
    pytestconfig.stash[_watch].exempt(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        _move_in(tmp_path_factory.mktemp("session") / "home", patch)
        yield


@pytest.fixture(autouse=True, scope="module")
def _settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stories in tests of the loop's mechanics mean nothing, so nothing proves them. Tests of the product as people
    use it run at default settings: those of `AT_DEFAULTS`, and those marked `defaults`."""
    path = request.path.as_posix().removeprefix(f"{ROOT.as_posix()}/tests/")
    is_default = path.startswith(AT_DEFAULTS) or request.node.get_closest_marker("defaults")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ({} if is_default else MECHANICS).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def _isolation(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Every test has its own empty home and state folder, and leaves no trace."""
    watch = pytestconfig.stash[_watch]
    folder = Path.cwd()
    running = isolation.children()
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_numbers))
    with pytest.MonkeyPatch.context() as patch:
        _move_in(home, patch)
        if request.node.get_closest_marker("defaults"):
            for name in MECHANICS:
                patch.delenv(name, raising=False)
        watch.is_on = True
        yield
        watch.is_on = False
    with contextlib.suppress(OSError):
        home.rmdir()  # most are still empty; what a test left there may help to understand it

    problems = [f"touched the real home: {what}" for what in watch.take()]
    if _gone_from(folder):
        problems.append("left another working directory")
        os.chdir(folder)
    for pid, command in isolation.left_behind(running).items():
        problems.append(f"left a process alive: {pid} {command}")
        os.kill(pid, signal.SIGKILL)
    if problems:
        pytest.fail("this test " + "; ".join(problems), pytrace=False)


@pytest.fixture
def git_identity() -> tuple[str, str]:
    """git knows who commits, as on a developer's machine; without this fixture it does not."""
    name, email = "Ada Tester", "ada@example.test"
    Path(os.environ["HOME"], ".gitconfig").write_text(
        f"[user]\n\tname = {name}\n\temail = {email}\n[init]\n\tdefaultBranch = main\n"
    )
    return name, email


def _move_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    home.mkdir(parents=True)
    for name, value in isolation.own_variables(home).items():
        patch.setenv(name, value)


def _gone_from(folder: Path) -> bool:
    try:
        return Path.cwd() != folder
    except FileNotFoundError:  # the working directory itself was removed
        return True
