"""`ralph watch`: a run seen from another terminal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from subprocess import Popen

import pytest

from ralph.core.events import AgentStarted, RunEnded
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for
from support.terminals import Terminal

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
SCRIPT = """\
stories:
  US-001:
    - implement:
        - say: "I start with the greeting.\\e]0;owned\\a\\e[2J"
        - run: echo hello
        - run: "exit 3"
        - run: while [ ! -e ../go ]; do sleep 0.05; done
        - write: {path: src/one.txt, text: "one\\n"}
        - claim: done
"""


def project(folder: Path) -> LoopProject:
    return LoopProject.make(folder, Scenario("feature", {"US-001": "Say one"}, SCRIPT, [], config=CONFIG))


def let_go(made: LoopProject) -> None:
    (made.folder / "go").touch()


@contextmanager
def running(made: LoopProject) -> Iterator[Popen[bytes]]:
    process = start_ralph(made, "run", "--quiet")
    try:
        deadline = time.monotonic() + 30
        while not any(isinstance(event, AgentStarted) for event in made.events()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process
    finally:
        let_go(made)
        if process.poll() is None:
            process.kill()
        process.communicate()
        for left in made.processes():
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


def test_a_run_is_shown_live_to_its_end(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        terminal = Terminal(made, "watch", columns=80, rows=24)
        for words in ("I start with the greeting.", "⚙ Bash echo hello", "failed", "Exit code 3", "▶ US-001"):
            terminal.until(words)
        assert "owned" not in terminal.text
        assert "\x1b[2J" not in terminal.text
        let_go(made)
        assert terminal.end() == 0
        assert finish(process).code == 0
    assert "✓ accepted US-001" in terminal.plain
    assert "every story is done" in terminal.plain
    assert terminal.text.endswith("\n")
    assert terminal.text.rindex("\x1b[?25h") > terminal.text.rindex("\x1b[?25l"), "the cursor is there again"


SLOW = "touch ../checking\nwhile [ ! -e ../gate ]; do sleep 0.05; done\nrm ../gate\n"


def test_running_checks_are_on_the_screen_and_in_the_status(tmp_path: Path) -> None:
    """The baseline, the story's checks, and the final checks."""
    script = SCRIPT.replace("        - run: while [ ! -e ../go ]; do sleep 0.05; done\n", "")
    scenario = Scenario("feature", {"US-001": "Say one"}, script, [], check=SLOW, config=CONFIG)
    made = LoopProject.make(tmp_path / "made", scenario)
    own = Terminal(made, "run", columns=80, rows=24)
    try:
        for number, words in enumerate(
            ("Running checks before the first story: ", "Running checks: ", "Running the final checks: ")
        ):
            own.until(f"⚙ {words.lower()}words (")  # also lets a run continue that waits for its screen to be read
            wait_for((made.folder / "checking").exists)
            (made.folder / "checking").unlink()
            watched = Terminal(made, "watch", columns=80, rows=24)
            watched.until(f"⚙ {words.lower()}words (")
            watched.press(b"\x03")
            watched.end()
            assert f"{words}words (" in run_ralph(made, "status").out
            now = run_ralph(made, "status", "--json").json["running"]
            assert (now["activity"], now["check"], now["iteration"]) == (
                "checks",
                "words",
                1 if number == 1 else None,
            )
            (made.folder / "gate").touch()
    finally:
        if "every story is done" not in own.plain:
            (made.folder / "gate").touch()
    assert own.end() == 0
    assert "running checks" not in run_ralph(made, "status").out.lower()


def test_what_the_agent_does_is_on_the_screen_within_half_a_second(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made):
        terminal = Terminal(made, "watch", columns=80, rows=24)
        terminal.until("Exit code 3")
        raw = min(made.state.glob("*/runs/*/raw/0001-*.log"), key=lambda path: len(path.name))
        with raw.open("ab") as stream:
            stream.write(b'{"type":"assistant","message":{"content":[{"type":"text","text":"LATE NEWS"}]},')
            stream.write(b'"parent_tool_use_id":null}\n')
        terminal.until("LATE NEWS", seconds=0.5)
        terminal.press(b"\x03")
        terminal.end()


def test_leaving_does_not_stop_the_run(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        terminal = Terminal(made, "watch")
        terminal.until("I start with the greeting.")
        terminal.press(b"\x03")
        assert terminal.end() == 0
        assert "continues; `ralph watch` shows it again, `ralph stop` stops it" in terminal.plain
        assert process.poll() is None
        let_go(made)
        assert finish(process).code == 0


def test_status_says_what_a_run_works_on_and_what_it_was_asked(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        before = run_ralph(made, "status").out
        assert ": implement US-001 Say one, " in before
        assert "So far: 0 iterations, " in before
        assert "1 in progress" in before
        assert "pending" not in before
        assert run_ralph(made, "stop").code == 0
        assert "A stop is pending: the run stops after this iteration" in run_ralph(made, "status").out
        document = run_ralph(made, "status", "--json").json
        now = document["running"]
        assert (now["iteration"], now["story"], now["mode"], now["pending"]) == (1, "US-001", "implement", "stop")
        assert document["stories"][0]["state"] == "in_progress"
        let_go(made)
        assert finish(process).code == 1
    assert run_ralph(made, "status", "--json").json["running"] is None


def test_when_piped_it_is_lines(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        let_go(made)
        watched = run_ralph(made, "watch", "-v")
        assert finish(process).code == 0
    assert watched.code == 0
    assert "\x1b" not in watched.out
    assert "  I start with the greeting." in watched.out
    assert "every story is done" in watched.out
    again = run_ralph(made, "watch")
    assert "✓ accepted US-001" in again.out, "over a finished run too"
    assert "  1 check passed (" in again.out
    run = made.journals()[-1].parent.name
    assert run_ralph(made, "watch", run[:12]).out == again.out
    assert run_ralph(made, "watch", "nonesuch").code == 64


def test_a_killed_run_is_said_to_be_dead_and_what_comes_next(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        process.kill()
        process.communicate()
        watched = run_ralph(made, "watch")
        assert watched.code == 1
        assert "died after" in watched.err
        assert "iteration 1 (US-001) was open; the next `ralph run` saves its work" in watched.err
        shown = run_ralph(made, "rescue", "list")
        assert "No rescued work." in shown.out
        assert "has not ended; what it does not accept is saved here later" in shown.err
        assert "killed  " in run_ralph(made, "runs").out
        assert "no session was started" not in run_ralph(made, "report").out
        let_go(made)
        assert run_ralph(made).code == 0
    assert any(isinstance(event, RunEnded) for event in made.events())
    first = made.journals()[0].parent.name
    told = run_ralph(made, "report", first).out
    assert "It was killed, or its machine went down." in told
    assert "Ctrl-C" not in told
    assert f"{first}  killed" in run_ralph(made, "runs").out


def test_a_killed_run_whose_journal_was_cut_is_not_said_to_have_left_nothing(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        process.kill()
        process.communicate()
        [journal] = made.journals()
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[: len(lines) // 2]))
        watched = run_ralph(made, "watch")
        assert "the journal was cut or changed" in watched.err
        assert "the next `ralph run` undoes nothing: look at `git status`" in watched.err
        assert "nothing was left open" not in watched.err
        assert "the journal was cut or changed" in run_ralph(made, "report").err
        let_go(made)


def test_nobody_is_told_to_commit_what_a_killed_agent_changed(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made) as process:
        process.kill()
        process.communicate()
        (made.root / "src").mkdir(exist_ok=True)
        (made.root / "src/half.txt").write_text("half\n")
        told = run_ralph(made, "preflight").out
        assert "uncommitted changes" not in told
        assert "has not ended: changed files may be its agent's" in told
        let_go(made)


def test_without_colour_nothing_is_painted(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made):
        terminal = Terminal(made, "watch", columns=80, rows=24, NO_COLOR="1")
        terminal.until("Exit code 3")
        terminal.press(b"\x03")
        terminal.end()
    assert "m" not in {part[0] for part in terminal.text.split("\x1b[")[1:] if part}
    assert "\x1b[3" not in terminal.text
    assert "\x1b[1m" not in terminal.text


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    with running(made):
        terminal = Terminal(made, "watch", "-v", TERM="dumb")
        terminal.until("I start with the greeting.")
        terminal.press(b"\x03")
        assert terminal.end() == 0
    assert "\x1b" not in terminal.text


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs a terminal that wraps its lines again")
def test_a_terminal_that_is_resized_keeps_no_leftovers(tmp_path: Path) -> None:
    made = project(tmp_path / "made")
    socket = str(tmp_path / "tmux")

    def tmux(*command: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *command], capture_output=True, env=made.env, check=True)
        return done.stdout.decode()

    with running(made):
        watch = f"cd {quote(str(made.root))} && exec {quote(sys.executable)} -m ralph watch"
        tmux("-u", "new-session", "-d", "-x", "100", "-y", "24", watch)
        try:
            for columns, rows in ((100, 24), (50, 20), (120, 30), (40, 14)):
                tmux("resize-window", "-x", str(columns), "-y", str(rows))
                shown = until(lambda: tmux("capture-pane", "-p"), lambda text: text.count("left: ") == 1)
                assert all(shown.count(words) <= 1 for words in ("0/1 story", "▶ implement", "iteration 1/5 ·")), shown
        finally:
            tmux("kill-server")


def until(look: Callable[[], str], is_right: Callable[[str], bool]) -> str:
    """What is seen once it has been right twice, half a second apart."""
    deadline = time.monotonic() + 10
    while True:
        time.sleep(0.5)
        first = look()
        time.sleep(0.5)
        if is_right(first) and is_right(second := look()):
            return second
        assert time.monotonic() < deadline, first
