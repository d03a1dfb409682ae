from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph.host.process import table as ptable
from ralph.host.process import tree
from ralph.host.process.raw_log import RawLog
from ralph.host.process.signals import StopSignal
from ralph.host.process.supervise import Command, Ending, How, Limits, Watcher, supervise
from ralph.host.process.tree import CHILDREN
from support.processes import Zoo, is_running, script, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process control")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc or a child subreaper")


class Cage(Zoo):
    """Supervises scripts, and keeps what they printed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lines: list[bytes] = []
        self.oversize: list[bytes] = []

    def watch(
        self, body: str, limits: Limits | None = None, stdin: bytes = b"", stop: StopSignal | None = None, **more: Any
    ) -> Ending:
        def keep(line: bytes, oversize: bool) -> None:
            (self.oversize if oversize else self.lines).append(line)

        command = Command(script(body), self.folder, self.env, stdin)
        limits = limits or Limits(total=20, grace=0.3)
        ending = supervise(command, limits, Watcher(**{"on_line": keep, **more}), stop)
        assert self.alive() == [], "nothing the agent started is alive"
        assert ending.survivors == ()
        return ending


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    return Cage(tmp_path)


def after(seconds: float, act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


# Output


def test_lines_come_through_as_bytes_and_the_last_needs_no_newline(cage: Cage) -> None:
    ending = cage.watch(r"os.write(1, b'one\n\xff\xfe\0two\r\nthree'); os.write(2, b'err'); sys.exit(3)")
    assert cage.lines == [b"one", b"\xff\xfe\0two", b"three"]
    assert (ending.how, ending.code, ending.signal) == (How.EXITED, 3, None)
    assert (ending.out_bytes, ending.err_tail, ending.swept) == (17, b"err", 0)


def test_lines_arrive_while_the_agent_still_runs(cage: Cage) -> None:
    seen: list[float] = []
    begun = time.monotonic()
    cage.watch("say('now'); time.sleep(0.6)", on_line=lambda *_: seen.append(time.monotonic()))
    assert time.monotonic() - seen[0] > 0.5
    assert seen[0] - begun < 0.5


def test_a_slow_reader_loses_nothing_of_what_was_printed_before_the_end(cage: Cage) -> None:
    def read_slowly(line: bytes, _: bool) -> None:
        cage.lines.append(line)
        time.sleep(0.005)

    cage.watch("os.write(1, b'x' * 999 + b'\\n'); os.write(1, (b'y' * 999 + b'\\n') * 60)", on_line=read_slowly)
    assert len(cage.lines) == 61


def test_a_signal_that_ends_it_is_told(cage: Cage) -> None:
    ending = cage.watch("os.kill(os.getpid(), signal.SIGSEGV)")
    assert (ending.how, ending.code, ending.signal) == (How.EXITED, None, signal.SIGSEGV)


def test_a_line_over_the_limit_is_delivered_once_as_its_beginning(cage: Cage) -> None:
    body = "left = b'y' * 6_000_000 + b'\\nafter\\n'\nwhile left: left = left[os.write(1, left):]"
    ending = cage.watch(body)
    assert cage.oversize == [b"y" * 65536]
    assert cage.lines == [b"after"]
    assert ending.out_bytes == 6_000_007


def test_the_end_of_much_stderr_is_kept(cage: Cage) -> None:
    ending = cage.watch("for n in range(30000): os.write(2, b'%06d\\n' % n)")
    assert ending.err_tail.endswith(b"029998\n029999\n")
    assert len(ending.err_tail) == 64 * 1024


def test_raw_output_is_kept_and_a_full_disk_does_not_disturb(cage: Cage, tmp_path: Path) -> None:
    with RawLog(tmp_path / "out.log") as raw, RawLog(tmp_path / "err.log") as raw_err:
        cage.watch(r"os.write(1, b'a\xff\r\nb'); os.write(2, b'err')", raw=raw, raw_err=raw_err)
    assert (tmp_path / "out.log").read_bytes() == b"a\xff\r\nb"
    assert (tmp_path / "err.log").read_bytes() == b"err"
    with RawLog(tmp_path / "none" / "out.log") as raw:
        assert cage.watch("say('hello')", raw=raw).code == 0
    assert raw.lost
    assert cage.lines[-1] == b"hello"


@linux
@pytest.mark.parametrize("kind", ["one-line", "short-lines"])
def test_memory_stays_small_whatever_is_printed(kind: str) -> None:
    bench = Path(__file__).parents[2] / "bench" / "agent_output.py"
    mb = 200 if kind == "one-line" else 100
    argv = [sys.executable, str(bench), "--json", "--mb", str(mb), "--kind", kind]
    found = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert (found["how"], found["code"], found["mb"]) == ("exited", 0, mb)
    assert found["lines"] == (0 if kind == "one-line" else 1_250_000)
    assert found["peak_mb"] < 60
    assert found["kept_on_disk_mb"] <= 50


# Input


def test_a_large_prompt_arrives_whole_while_output_is_read(cage: Cage) -> None:
    prompt = os.urandom(2_000_000).replace(b"\n", b"x")
    body = "while data := os.read(0, 65536):\n    left = data\n    while left: left = left[os.write(1, left):]\n"
    cage.watch(body, stdin=prompt)
    assert cage.lines == [prompt]


def test_an_agent_that_does_not_read_its_prompt_is_not_waited_for(cage: Cage) -> None:
    assert cage.watch("sys.exit(4)", stdin=b"x" * 3_000_000).code == 4
    assert cage.watch("os.close(0); say('deaf'); time.sleep(0.2)", stdin=b"x" * 3_000_000).code == 0
    assert cage.lines == [b"deaf"]
    ending = cage.watch("time.sleep(300)", Limits(total=0.3, grace=0.2), stdin=b"x" * 3_000_000)
    assert ending.how is How.TIMED_OUT


def test_it_has_its_own_session_no_terminal_and_no_descriptor_of_ours(cage: Cage) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    body = (
        "say(str((os.getsid(0) == os.getpid(), os.isatty(0), os.read(0, 1))))\n"
        "def is_open(fd):\n    try: os.fstat(fd); return True\n    except OSError: return False\n"
        "say(str([fd for fd in range(3, 200) if is_open(fd)]))\n"
    )
    with StopSignal() as stop:
        cage.watch(body, stop=stop)
    os.close(reader)
    os.close(writer)
    assert cage.lines == [b"(True, False, b'')", b"[]"]


# Time


def test_over_its_time_it_is_ended(cage: Cage) -> None:
    ending = cage.watch("say('up'); sleep_long()", Limits(total=0.4, grace=5))
    assert (ending.how, ending.signal) == (How.TIMED_OUT, signal.SIGTERM)
    assert 0.4 <= ending.duration < 1.5


def test_an_agent_that_ignores_being_asked_is_killed_after_the_grace(cage: Cage) -> None:
    ending = cage.watch("ignore_term(); say('up'); sleep_long()", Limits(total=0.4, grace=0.3))
    assert (ending.how, ending.signal) == (How.TIMED_OUT, signal.SIGKILL)
    assert ending.ran < ending.duration, "the grace period is not time the agent was given"
    assert 0.7 <= ending.duration < 2
    assert ending.swept == 0


def test_what_it_prints_while_it_ends_is_still_read(cage: Cage) -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: (say('y' * 500_000), say('bye'), sys.exit(9)))\nsleep_long()"
    ending = cage.watch(body, Limits(total=0.4, grace=5))
    assert (ending.how, ending.code) == (How.TIMED_OUT, 9)
    assert cage.lines[-1] == b"bye"


def test_silence_ends_it(cage: Cage) -> None:
    ending = cage.watch("say('up'); sleep_long()", Limits(total=20, idle=0.4, grace=0.3))
    assert ending.how is How.SILENT
    assert ending.last_output_age >= 0.4
    assert ending.duration < 2


def test_output_of_either_kind_is_no_silence(cage: Cage) -> None:
    body = "for n in range(8):\n    os.write(1 + n % 2, b'.')\n    time.sleep(0.1)"
    assert cage.watch(body, Limits(total=20, idle=0.6)).how is How.EXITED


def test_another_sign_of_life_is_no_silence_until_it_stops(cage: Cage) -> None:
    begun = time.monotonic()
    ending = cage.watch(
        "sleep_long()",
        Limits(total=20, idle=0.3, grace=0.3),
        signs_of_life=lambda: min(time.monotonic() - begun, 0.6),
    )
    assert ending.how is How.SILENT
    assert 0.7 < ending.duration < 2.5


@linux
def test_a_silent_child_at_work_is_a_sign_of_life(cage: Cage) -> None:
    agents: list[ptable.ProcessId] = []
    ending = cage.watch(
        "subprocess.run([sys.executable, '-S', '-c', 'import time\\nt=time.time()\\nwhile time.time() < t+.8: pass'])",
        Limits(total=20, idle=0.4, grace=0.3),
        on_start=agents.append,
        signs_of_life=lambda: tree.cpu_seconds(agents[0]),
    )
    assert ending.how is How.EXITED


def test_closing_its_output_is_not_ending(cage: Cage) -> None:
    begun = time.process_time()
    ending = cage.watch("say('bye'); os.close(1); os.close(2); time.sleep(0.5); os._exit(6)")
    assert (ending.how, ending.code) == (How.EXITED, 6)
    assert ending.duration >= 0.5
    assert time.process_time() - begun < 0.3, "waiting is not busy"
    ending = cage.watch("os.close(1); os.close(2); sleep_long()", Limits(total=0.4, grace=0.2))
    assert ending.how is How.TIMED_OUT


def test_an_agent_that_stays_after_its_final_line_is_closed(cage: Cage) -> None:
    body = "say('work'); say('final')\nwhile True: time.sleep(0.05); say('still here')"
    ending = cage.watch(body, Limits(total=20, grace=0.3, linger=0.4), is_final=lambda: b"final" in cage.lines)
    assert ending.how is How.LINGERED
    assert ending.duration < 2


def test_an_agent_that_goes_on_after_a_result_is_not_closed(cage: Cage) -> None:
    ending = cage.watch(
        "say('final'); say('init'); time.sleep(0.8); say('final')",
        Limits(total=20, grace=0.3, linger=0.3),
        is_final=lambda: cage.lines[-1] == b"final",
    )
    assert ending.how is How.EXITED
    assert cage.lines == [b"final", b"init", b"final"]


# Being asked to stop


def test_a_signal_stops_the_agent_at_once(cage: Cage) -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); say('up'); sleep_long()"
    with StopSignal() as stop:
        begun = time.monotonic()
        timer = after(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        ending = cage.watch(body, Limits(total=20, grace=10), stop=stop)
        timer.join()
        assert 0.5 <= time.monotonic() - begun < 1.2
    assert (ending.how, ending.code) == (How.STOPPED, 5)


def test_the_second_signal_kills_at_once(cage: Cage) -> None:
    with StopSignal() as stop:
        timers = [after(s, lambda: os.kill(os.getpid(), signal.SIGINT)) for s in (0.4, 0.8)]
        begun = time.monotonic()
        ending = cage.watch("ignore_term(); say('up'); sleep_long()", Limits(total=20, grace=15), stop=stop)
        for timer in timers:
            timer.join()
        assert 0.8 <= time.monotonic() - begun < 1.6
    assert (ending.how, ending.signal) == (How.STOPPED, signal.SIGKILL)


def test_nothing_is_started_after_a_request_to_stop(cage: Cage) -> None:
    with StopSignal() as stop:
        stop.request()
        ending = cage.watch("note('started')", stop=stop)
    assert ending.how is How.STOPPED
    assert cage.noted("started") == []


def test_a_flood_of_output_does_not_delay_a_stop(cage: Cage) -> None:
    with StopSignal() as stop:
        timer = after(0.4, stop.request)
        begun = time.monotonic()
        ending = cage.watch(
            "ignore_term()\nwhile True: os.write(1, b'x\\n' * 30000)",
            Limits(total=20, grace=0.2),
            stop=stop,
            on_line=lambda *_: None,
        )
        timer.join()
        assert time.monotonic() - begun < 2
    assert ending.how is How.STOPPED


# What it leaves behind

UNTIL_NOTED = "\nwhile not os.path.exists('pids'): time.sleep(0.01)"
LEFT_BEHIND = {
    "children in the background": ("subprocess.Popen(['sleep', '300']); subprocess.Popen(['sleep', '300'])", 2),
    "a child in its own session": ("subprocess.Popen(['sleep', '300'], start_new_session=True)", 1),
    "a daemon": ("daemon(lambda: (note('pids'), sleep_long()))" + UNTIL_NOTED, 1),
    "a daemon that ignores SIGTERM": ("daemon(lambda: (ignore_term(), note('pids'), sleep_long()))" + UNTIL_NOTED, 1),
    "a daemon with no mark": ("daemon(lambda: forget_environment('note(\"pids\"); sleep_long()'))" + UNTIL_NOTED, 1),
    "a child that keeps printing": ("if os.fork() == 0:\n    note('pids')\n    while True: say('.')" + UNTIL_NOTED, 1),
}


@linux
@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_nothing_it_left_behind_stays_alive(cage: Cage, what: str) -> None:
    body, count = LEFT_BEHIND[what]
    ending = cage.watch(f"say('up')\n{body}\nsay('down'); os._exit(8)", Limits(total=20, grace=0.3))
    assert (ending.how, ending.code) == (How.EXITED, 8)
    assert ending.swept == count
    assert ending.duration < 5
    assert {b"up", b"down"} <= set(cage.lines)
    assert not any(is_running(pid) for pid in cage.noted())


@linux
def test_a_deaf_tree_over_its_time_is_ended_as_a_whole(cage: Cage) -> None:
    body = (
        "ignore_term()\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "daemon(lambda: (note('pids'), sleep_long()))\n"
        "for _ in range(3):\n    if os.fork() == 0: break\n"
        "sleep_long()"
    )
    ending = cage.watch(body, Limits(total=0.6, grace=0.2))
    assert ending.how is How.TIMED_OUT
    assert ending.swept == 5, "deafness is inherited"


@linux
def test_the_agents_own_end_is_not_delayed_by_what_it_left_behind(cage: Cage) -> None:
    begun = time.monotonic()
    body = "if os.fork() == 0:\n    ignore_term(); note('pids'); sleep_long()\n"
    ending = cage.watch(body + "while not os.path.exists('pids'): time.sleep(0.01)", Limits(total=20, grace=30))
    assert ending.duration < 1
    assert time.monotonic() - begun < 4


@linux
def test_where_orphans_do_not_come_to_us_those_seen_before_are_ended(
    cage: Cage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of macOS: whoever was seen in the tree once is still known when its parent has ended."""
    tree.adopt_orphans()
    monkeypatch.setattr(ptable, "_HAS_PROC", False)
    monkeypatch.setattr(CHILDREN, "_adopts", False)
    body = "if os.fork() == 0:\n    os.setsid(); note('pids'); sleep_long()\ntime.sleep(1.5)"
    ending = cage.watch(body, Limits(total=20, grace=0.3))
    (daemon,) = cage.noted()
    assert ending.swept == 1
    os.waitpid(daemon, 0)  # elsewhere init would do that


# Starting


def test_the_start_is_told_before_any_output(cage: Cage) -> None:
    told: list[tuple[ptable.ProcessId, bool, int]] = []
    ending = cage.watch(
        "say('up'); time.sleep(0.2)", on_start=lambda p: told.append((p, tree.is_alive(p), len(cage.lines)))
    )
    assert ending.code == 0
    ((agent, alive, lines),) = told
    assert (alive, lines) == (True, 0)
    assert agent.start


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-agent",), "no-such-agent is not installed"),
        (("/etc/passwd",), "not an executable file"),
        (("true", "x" * 10_000_000), "longer than the system allows"),
        (("tr\0ue",), "null"),
    ],
)
def test_what_cannot_be_started_is_an_ending_with_a_sentence(cage: Cage, argv: tuple[str, ...], said: str) -> None:
    ending = supervise(Command(argv, cage.folder, cage.env), Limits(), Watcher(on_line=lambda *_: None))
    assert ending.how is How.FAILED_TO_START
    assert said in ending.message
    assert (ending.code, ending.signal) == (None, None)


def test_an_error_in_a_callable_ends_the_agent_and_is_passed_on(cage: Cage) -> None:
    def fail(*_: object) -> None:
        raise OSError("the journal is full")

    body = "subprocess.Popen(['sleep', '300'], start_new_session=True); say('up'); sleep_long()"
    with pytest.raises(OSError, match="journal"):
        cage.watch(body, on_line=fail)
    assert cage.alive() == []
    with pytest.raises(OSError, match="journal"):
        cage.watch(body, on_start=fail)
    assert cage.alive() == []


@linux
def test_many_agents_in_a_row_leak_neither_descriptors_nor_zombies(cage: Cage) -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    cage.watch("pass")
    before = opened(), ptable.own_children()
    for _ in range(10):
        cage.watch("daemon(lambda: None); say('x')", stdin=b"in")
    assert (opened(), ptable.own_children()) == before


@linux
def test_a_killed_supervisor_leaves_an_agent_that_the_next_one_can_end(cage: Cage) -> None:
    """The crash that recovery is for: nobody had time to end anything."""
    body = "daemon(lambda: (ignore_term(), note('pids'), sleep_long())); note('agent'); sleep_long()"
    outer = (
        "import sys, os; from pathlib import Path; from ralph.host.process.supervise import *\n"
        f"command = Command({script(body)!r}, Path('.'), {{**os.environ, 'RALPH_RUN': 'killed'}})\n"
        "start = lambda p: Path('start').write_text(p.start)\n"
        "supervise(command, Limits(), Watcher(on_line=print, on_start=start))\n"
    )
    loop = subprocess.Popen([sys.executable, "-c", outer], cwd=cage.folder, env=cage.env, start_new_session=True)
    wait_for(lambda: cage.noted() and cage.noted("agent") and (cage.folder / "start").exists())
    loop.kill()
    loop.wait()
    agent = ptable.ProcessId(cage.noted("agent")[0], (cage.folder / "start").read_text())
    wait_for(lambda: not is_running(agent.pid))  # the system ends it with its parent
    assert cage.alive() == cage.noted()
    assert tree.end_left_behind(agent, ("RALPH_RUN", "killed"), 0.2) == 1
    assert cage.alive() == []
