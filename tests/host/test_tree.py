from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.host.process import table as ptable
from ralph.host.process import tree
from ralph.host.process.start import run
from ralph.host.process.table import ProcessId, parse_ps
from support.processes import MARK, Zoo, is_running, script, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process control")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a child subreaper")


@pytest.fixture
def zoo(tmp_path: Path) -> Iterator[Zoo]:
    zoo = Zoo(tmp_path)
    yield zoo
    for pid in zoo.alive():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["proc", "ps"])
def any_table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading the table of processes."""
    if request.param == "proc" and sys.platform != "linux":
        pytest.skip("no /proc")
    monkeypatch.setattr(ptable, "_HAS_PROC", request.param == "proc")
    return str(request.param)


def known(pid: int) -> ProcessId:
    found = tree.identify(pid)
    assert found is not None
    return found


@pytest.mark.usefixtures("any_table")
def test_a_process_is_known_by_number_and_start(zoo: Zoo) -> None:
    me = known(os.getpid())
    assert tree.is_alive(me)
    assert tree.identify(os.getpid()) == me
    assert not tree.is_alive(ProcessId(me.pid, "another time"))
    child = zoo.popen("sleep_long()")
    identity = known(child.pid)
    assert tree.is_alive(identity)
    child.kill()
    wait_for(lambda: not is_running(child.pid))
    assert tree.identify(child.pid) is not None, "it is a zombie"
    assert not tree.is_alive(identity)
    child.wait()
    assert tree.identify(child.pid) is None


@linux
def test_a_process_whose_main_thread_has_ended_is_alive(zoo: Zoo) -> None:
    body = (
        "import threading, ctypes\n"
        "threading.Thread(target=sleep_long).start()\n"
        "note('pids')\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    child = zoo.popen(body)
    wait_for(lambda: (r := ptable.row(child.pid)) and r.state == "Z")
    assert tree.is_alive(known(child.pid))
    assert tree.end_tree([known(child.pid)], grace=0).killed == 1
    assert child.wait(5) == -9


@pytest.mark.usefixtures("any_table")
def test_descendants_are_found_over_all_generations(zoo: Zoo) -> None:
    child = zoo.popen("if os.fork() == 0 and os.fork() == 0: os.setsid(); os.fork()\nnote('pids'); sleep_long()")
    wait_for(lambda: len(zoo.noted()) == 4)
    assert sorted(p.pid for p in tree.descendants(child.pid)) == sorted(set(zoo.noted()) - {child.pid})
    tree.end_tree([known(child.pid)], grace=0)
    child.wait()


@linux
def test_the_mark_finds_exactly_the_processes_that_carry_it(zoo: Zoo) -> None:
    child = zoo.popen("os.fork(); note('pids'); sleep_long()")
    other = zoo.popen("sleep_long()", env={MARK: zoo.mark + "x"})
    try:
        wait_for(lambda: len(zoo.noted()) == 2)
        assert sorted(p.pid for p in tree.marked(MARK, zoo.mark)) == sorted(zoo.noted())
        assert tree.marked(MARK, zoo.mark[:-1]) == []
    finally:
        tree.end_tree([known(child.pid)], grace=0)
        child.wait()
        other.kill()
        other.wait()


@pytest.mark.usefixtures("any_table")
def test_a_tree_that_ends_in_good_order_is_not_killed(zoo: Zoo) -> None:
    child = zoo.popen("os.fork(); note('pids'); sleep_long()")
    wait_for(lambda: len(zoo.noted()) == 2)
    ended = tree.end_tree([known(child.pid)], grace=10)
    assert (ended.asked, ended.killed, ended.survivors) == (2, 0, ())
    assert zoo.alive() == []
    child.wait()


@pytest.mark.usefixtures("any_table")
def test_children_that_ignore_being_asked_or_left_the_session_are_killed(zoo: Zoo) -> None:
    body = "ignore_term()\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        break\n"
    child = zoo.popen(body + "note('pids'); sleep_long()")
    wait_for(lambda: len(zoo.noted()) == 4)
    ended = tree.end_tree([known(child.pid)], grace=0.2)
    assert (ended.asked, ended.killed, ended.survivors) == (4, 4, ())
    assert zoo.alive() == []
    child.wait()


def test_a_stopped_process_still_ends_in_good_order(zoo: Zoo) -> None:
    child = zoo.popen("signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nnote('pids'); sleep_long()")
    wait_for(zoo.noted)
    os.kill(child.pid, signal.SIGSTOP)
    assert tree.end_tree([known(child.pid)], grace=5).killed == 0
    assert child.wait() == 9


def test_the_grace_ends_early_when_asked(zoo: Zoo) -> None:
    child = zoo.popen("ignore_term(); note('pids'); sleep_long()")
    wait_for(zoo.noted)
    begun = time.monotonic()
    ended = tree.end_tree([known(child.pid)], grace=30, meanwhile=lambda seconds: time.monotonic() - begun > 0.2)
    assert ended.killed == 1
    assert time.monotonic() - begun < 2
    child.wait()


@pytest.mark.usefixtures("any_table")
def test_a_process_of_the_same_number_but_another_start_is_never_touched(zoo: Zoo) -> None:
    child = zoo.popen("sleep_long()")
    stale = ProcessId(child.pid, known(child.pid).start.replace("1", "2") + "0")
    ended = tree.end_tree([stale], grace=0.1, also=lambda: [stale])
    assert ended == tree.Ended()
    assert not tree.send(stale, signal.SIGKILL)
    assert child.poll() is None
    child.kill()
    child.wait()


def test_neither_we_nor_those_we_run_in_nor_what_else_they_started_are_ever_ended(zoo: Zoo) -> None:
    inner = (
        "import os; from ralph.host.process import tree; me, parent = map(tree.identify, (os.getpid(), os.getppid())); "
        "print(tree.end_tree([me, parent], grace=0).asked, flush=True)"
    )
    body = f"subprocess.Popen(['sleep', '300'])\nsubprocess.run([{sys.executable!r}, '-c', {inner!r}])\n"
    done = run(script(body + "say('still here')"), cwd=zoo.folder, env=zoo.env, timeout=20)
    assert done.out == b"0\nstill here\n", done.err
    assert done.swept == 1


@linux
def test_two_that_restart_each_other_are_both_ended(zoo: Zoo) -> None:
    """Each watches the other and starts a new one when it is gone."""
    body = """
ignore_term()
def guard(other):
    note('pids')
    while True:
        try:
            os.kill(other, 0)
            os.waitpid(-1, os.WNOHANG)
        except ProcessLookupError:
            me = os.getpid()
            other = os.fork()
            if other == 0:
                os.setsid(); note('pids'); other = me
        except ChildProcessError:
            pass
        time.sleep(0.001)
first = os.getpid()
child = os.fork()
guard(child or first)
"""
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=0.4, grace=0.2)
    assert done.timed_out
    assert len(zoo.noted()) >= 2
    assert zoo.alive() == []


@linux
def test_a_process_that_always_forks_and_ends_is_caught(zoo: Zoo) -> None:
    """Every generation lives for a moment only, in a session of its own."""
    body = """
if os.fork():
    time.sleep(0.2)
    os._exit(0)
ignore_term()
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
"""
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=10, grace=0.2)
    assert done.code == 0
    assert done.swept >= 1
    assert zoo.alive() == []
    time.sleep(0.05)
    assert zoo.alive() == []


@linux
def test_a_small_fork_bomb_is_defused(zoo: Zoo) -> None:
    """Sixty processes that each keep forking new ones, all deaf to SIGTERM."""
    body = """
ignore_term()
for _ in range(6):
    os.fork()
while True:
    if os.fork() == 0:
        time.sleep(0.05)
        os._exit(0)
    os.waitpid(-1, 0)
"""
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=0.5, grace=0.1)
    assert done.timed_out
    assert zoo.alive() == []


@linux
def test_a_daemon_that_changed_its_title_and_wiped_its_environment_is_ended(zoo: Zoo) -> None:
    inner = (
        "import ctypes; ctypes.CDLL(None).prctl(15, b'kworker/0:1', 0, 0, 0); ignore_term(); note('pids'); sleep_long()"
    )
    body = f"daemon(lambda: forget_environment({inner!r}))\nwhile not os.path.exists('pids'): time.sleep(0.01)"
    done = run(script(body), cwd=zoo.folder, env=zoo.env, grace=0.1)
    assert done.swept == 1
    assert len(zoo.noted()) == 1
    assert zoo.alive() == []


@linux
def test_ended_orphans_are_reaped(zoo: Zoo) -> None:
    run(script("for _ in range(5):\n    daemon(lambda: note('pids'))\ntime.sleep(0.2)"), cwd=zoo.folder, env=zoo.env)
    assert len(zoo.noted()) == 5
    assert [pid for pid in zoo.noted() if ptable.row(pid)] == []
    child = zoo.popen("if os.fork() == 0: os.fork()\nnote('others'); sleep_long()")
    wait_for(lambda: len(zoo.noted("others")) == 3)
    tree.end_tree([known(child.pid)], grace=0)
    assert [pid for pid in zoo.noted("others") if ptable.row(pid)] == [child.pid]
    assert child.wait() == -9, "its status was somebody else's to take"


def test_processor_time_of_a_tree_grows_while_a_child_works(zoo: Zoo) -> None:
    if sys.platform != "linux":
        pytest.skip("not told by ps")
    child = zoo.popen("if os.fork() == 0:\n    note('pids')\n    while True: pass\nsleep_long()")
    wait_for(zoo.noted)
    root = known(child.pid)
    before = tree.cpu_seconds(root)
    wait_for(lambda: tree.cpu_seconds(root) > before)
    assert tree.cpu_seconds(ProcessId(root.pid, "another time")) < tree.cpu_seconds(root) + 1
    tree.end_tree([root], grace=0)
    child.wait()


@linux
def test_what_a_killed_loop_left_behind_is_ended(zoo: Zoo) -> None:
    """The agent, its daemon, and one whose lineage is lost and that only the mark gives away."""
    loop = zoo.popen(
        "agent = subprocess.Popen([sys.executable, '-S', '-c', PRELUDE + "
        '\'daemon(lambda: (note("pids"), ignore_term(), sleep_long())); note("agent"); sleep_long()\'],'
        " env={**os.environ, 'RALPH_RUN': 'run-' + os.environ['RALPH_TEST_MARK']}, start_new_session=True)\n"
        "sleep_long()"
    )
    wait_for(lambda: zoo.noted() and zoo.noted("agent"))
    agent = known(zoo.noted("agent")[0])
    bystander = zoo.popen("sleep_long()", env={"RALPH_RUN": "run-of-somebody-else"})
    loop.kill()
    loop.wait()
    assert sorted(zoo.alive()) == sorted([agent.pid, *zoo.noted(), bystander.pid])
    assert tree.end_left_behind(agent, ("RALPH_RUN", f"run-{zoo.mark}"), grace=0.2) == 2
    assert zoo.alive() == [bystander.pid]
    assert tree.end_left_behind(agent, ("RALPH_RUN", f"run-{zoo.mark}"), grace=0.2) == 0
    assert tree.end_left_behind(None, ("RALPH_RUN", f"run-{zoo.mark}"), grace=0.2) == 0
    bystander.kill()
    bystander.wait()


@linux
def test_a_loop_inside_of_the_agent_it_recovers_from_spares_itself_and_that_agent(zoo: Zoo) -> None:
    inner = (
        "import os; from ralph.host.process import tree; a = tree.identify(os.getppid()); "
        "print(tree.end_left_behind(a, ('RALPH_RUN', 'outer'), 0.2), tree.is_alive(a), flush=True)"
    )
    body = (
        f"subprocess.Popen(['sleep', '300'])\nsubprocess.run([{sys.executable!r}, '-c', {inner!r}])\nsay('still here')"
    )
    done = run(script(body), cwd=zoo.folder, env={**zoo.env, "RALPH_RUN": "outer"}, timeout=20)
    assert done.out == b"1 True\nstill here\n", done.err
    assert zoo.alive() == []


def test_lines_of_ps_are_read_and_headers_are_not() -> None:
    row = parse_ps("  123     1   120 Ss   Mon Nov  3 09:04:05 2025")
    assert row is not None
    assert (row.pid, row.parent, row.group, row.state) == (123, 1, 120, "S")
    assert row.start == "Mon Nov 3 09:04:05 2025"
    assert parse_ps("  PID  PPID  PGID STAT STARTED") is None
    assert parse_ps("") is None


@linux
def test_both_tables_agree_on_who_is_whose_child(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = subprocess.Popen(["sleep", "30"])
    try:
        by_proc = ptable.row(ours.pid)
        monkeypatch.setattr(ptable, "_HAS_PROC", False)
        by_ps = ptable.row(ours.pid)
        assert by_proc is not None
        assert by_ps is not None
        assert (by_proc.parent, by_proc.group) == (by_ps.parent, by_ps.group) == (os.getpid(), os.getpgrp())
        assert ours.pid in ptable.own_children()
    finally:
        ours.kill()
        ours.wait()
