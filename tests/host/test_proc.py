from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.process import table as ptable
from ralph.host.process.start import finish, run, shell, start
from ralph.host.process.tree import CHILDREN, Tree, adopt_orphans
from support.processes import Zoo, script, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process control")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    return Zoo(tmp_path)


def test_output_code_and_input_come_through(tmp_path: Path) -> None:
    done = run(shell("cat; echo err >&2; exit 3"), cwd=tmp_path, stdin=b"in\xff\0put")
    assert (done.code, done.out, done.err) == (3, b"in\xff\0put", b"err\n")
    assert not done.ok
    assert not done.timed_out
    assert run(["true"], cwd=tmp_path).ok


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run(shell("kill -9 $$"), cwd=tmp_path).code == -9


def test_it_runs_in_the_folder_and_with_the_environment_it_is_given(tmp_path: Path) -> None:
    done = run(["env"], cwd=tmp_path, env={"PATH": os.environ["PATH"], "ONLY": "this"})
    assert sorted(done.out.split(b"\n"))[1:] == sorted([b"ONLY=this", b"PATH=" + os.environ["PATH"].encode()])
    assert run(["pwd", "-P"], cwd=tmp_path).out.strip() == os.fsencode(tmp_path.resolve())


def test_standard_input_is_never_ours(tmp_path: Path) -> None:
    assert run(["cat"], cwd=tmp_path, timeout=5).ok
    done = run(script("print(os.isatty(0), os.getsid(0) == os.getpid())"), cwd=tmp_path)
    assert done.out == b"False True\n"


def test_no_descriptor_of_ours_gets_into_the_child(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        done = run(script(f"os.fstat({writer})"), cwd=tmp_path)
    finally:
        os.close(reader)
        os.close(writer)
    assert done.code == 1
    assert b"Bad file descriptor" in done.err


def test_ignored_and_blocked_signals_are_not_handed_down(tmp_path: Path) -> None:
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        done = run(shell("kill -HUP $$; echo survived"), cwd=tmp_path)
        assert (done.code, done.out) == (-signal.SIGHUP, b"")
        body = "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
        assert run(script(body), cwd=tmp_path).out == b"set()\n"
        assert run(shell("yes | head -1; kill -PIPE $$"), cwd=tmp_path).code == -signal.SIGPIPE
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        signal.signal(signal.SIGHUP, old)


def test_a_child_that_never_reads_its_input_does_not_block(tmp_path: Path) -> None:
    assert run(["true"], cwd=tmp_path, stdin=b"x" * 5_000_000).ok
    done = run(shell("exec <&-; echo closed"), cwd=tmp_path, stdin=b"x" * 5_000_000)
    assert done.out == b"closed\n"


def test_much_input_and_much_output_at_the_same_time_do_not_deadlock(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    assert run(["cat"], cwd=tmp_path, stdin=data, limit=4_000_000).out == data


def test_long_output_is_cut_in_the_middle_and_says_so(tmp_path: Path) -> None:
    done = run(shell("echo first; yes | head -c 3000000; echo last"), cwd=tmp_path, limit=1000)
    assert done.cut
    assert len(done.out) <= 1000
    assert done.out.startswith(b"first\n")
    assert done.out.endswith(b"last\n")
    assert b"bytes left out" in done.out


def test_over_time_the_whole_tree_is_ended(zoo: Zoo) -> None:
    body = "ignore_term(); subprocess.Popen(['sleep', '300']); os.system('setsid sleep 300 &'); say('up'); sleep_long()"
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=0.5, grace=0.2)
    assert done.timed_out
    assert done.code == -signal.SIGKILL
    assert done.out == b"up\n"
    assert 0.5 <= done.duration < 3
    assert zoo.alive() == []


def test_over_time_it_may_end_in_good_order(zoo: Zoo) -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: (say('x' * 300_000), say('bye'), sys.exit(7))); sleep_long()"
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=0.4, grace=5)
    assert done.timed_out
    assert done.code == 7
    assert done.out.endswith(b"bye\n")
    assert done.duration < 4


def test_what_keeps_the_pipe_open_does_not_keep_us_waiting(zoo: Zoo) -> None:
    done = run(shell("echo out; sleep 300 & exit 4"), cwd=zoo.folder, env=zoo.env)
    assert (done.code, done.out, done.swept) == (4, b"out\n", 1)
    assert done.duration < 3
    assert zoo.alive() == []


@linux
def test_a_daemon_without_our_mark_is_ended_too(zoo: Zoo) -> None:
    body = "daemon(lambda: forget_environment('ignore_term(); note(\"pids\"); sleep_long()'))\n"
    body += "while not os.path.exists('pids'): time.sleep(0.01)"
    done = run(script(body), cwd=zoo.folder, env=zoo.env, grace=0.2)
    assert done.code == 0
    assert len(zoo.noted()) == 1
    assert zoo.alive() == []


@linux
def test_without_a_sweep_what_it_left_behind_lives(zoo: Zoo) -> None:
    done = run(shell("sleep 300 >/dev/null 2>&1 & echo $!"), cwd=zoo.folder, env=zoo.env, sweep=False)
    assert zoo.alive() == [int(done.out)]
    run(["true"], cwd=zoo.folder)
    assert zoo.alive() == [int(done.out)], "another command swept it"
    os.kill(int(done.out), signal.SIGKILL)
    os.waitpid(int(done.out), 0)


@linux
def test_commands_at_the_same_time_do_not_end_each_other(zoo: Zoo) -> None:
    codes: list[int] = []

    def work() -> None:
        for _ in range(10):
            body = "sleep 0.05 & (setsid sleep 300 >/dev/null 2>&1 &) ; wait; exit 5"
            codes.append(run(shell(body), cwd=zoo.folder, env=zoo.env).code)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert codes == [5] * 40
    assert zoo.alive() == []


@linux
def test_of_two_commands_that_end_together_the_last_one_swept_ends_what_both_left(zoo: Zoo) -> None:
    body = ["/bin/sh", "-c", "(setsid sleep 300 >/dev/null 2>&1 &) ; exit 0"]
    processes = [start(body, cwd=zoo.folder, env=zoo.env, stdin=False) for _ in range(2)]
    try:
        wait_for(lambda: len(zoo.alive()) == 2)
        for process in processes:
            process.wait()
        for process in processes:
            Tree(process).end(grace=0.2)
        assert zoo.alive() == []
    finally:
        for process in processes:
            finish(process)


@linux
def test_children_that_others_started_are_left_alone(zoo: Zoo) -> None:
    before = zoo.popen("sleep_long()")
    try:
        assert run(shell("sleep 300 & true"), cwd=zoo.folder).swept == 1
        assert zoo.alive() == [before.pid]
    finally:
        before.kill()
        before.wait()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: "no-such-program", "no-such-program is not installed, or not on PATH"),
        (lambda folder: str(folder / "none"), "no such file"),
        (str, "not an executable file"),
        (lambda folder: _file(folder, "#!/bin/sh\n", 0o644), "not an executable file"),
        (lambda folder: _file(folder, "#!/no/such/interpreter\n", 0o755), "the interpreter named in its first line"),
        (lambda folder: _file(folder, "plain text", 0o755), "neither a program for this machine nor a script"),
        (lambda folder: "ls\0", "null"),
        (lambda folder: "", "empty"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(SetupError, match=said):
        run([make(tmp_path)], cwd=tmp_path)


def test_a_program_is_looked_for_on_the_path_of_the_child(tmp_path: Path) -> None:
    program = Path(_file(tmp_path, "#!/bin/sh\necho found\n", 0o755))
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert run([program.name], cwd=tmp_path, env={"PATH": path}).out == b"found\n"
    with pytest.raises(SetupError, match="program is not installed, or not on PATH"):
        run([program.name], cwd=tmp_path, env={})


def test_a_missing_folder_and_a_command_line_that_is_too_long_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"nowhere: no such folder"):
        run(["true"], cwd=tmp_path / "nowhere")
    with pytest.raises(SetupError, match="longer than the system allows"):
        run(["true", "x" * 10_000_000], cwd=tmp_path)


def test_an_exception_ends_what_was_started(zoo: Zoo) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(shell("setsid sleep 300 & sleep 300"), cwd=zoo.folder, env=zoo.env)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert zoo.alive() == []


def test_exit_codes_are_true_even_when_child_signals_were_ignored_by_whoever_started_us(tmp_path: Path) -> None:
    body = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from pathlib import Path; from ralph.host.process.start import run, shell\n"
        "print(run(shell('exit 3'), cwd=Path('.')).code)"
    )
    assert run([sys.executable, "-c", body], cwd=tmp_path).out == b"3\n"


@linux
@pytest.mark.usefixtures("_without_adoption")
def test_where_orphans_do_not_come_to_us_the_group_is_swept(zoo: Zoo) -> None:
    """The way of macOS: the table comes from ps, and a process group is what keeps a tree together."""
    done = run(shell("(sleep 300 & echo $! >> pids); echo out"), cwd=zoo.folder, env=zoo.env)
    assert (done.code, done.out, done.swept) == (0, b"out\n", 1)
    assert zoo.alive() == []
    body = "ignore_term(); subprocess.Popen(['sleep', '300'], start_new_session=True); say('up'); sleep_long()"
    done = run(script(body), cwd=zoo.folder, env=zoo.env, timeout=0.5, grace=0.2)
    assert (done.code, done.out, done.timed_out) == (-signal.SIGKILL, b"up\n", True)
    assert zoo.alive() == []


@pytest.fixture
def _without_adoption(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    adopt_orphans()
    monkeypatch.setattr(ptable, "_HAS_PROC", False)
    monkeypatch.setattr(CHILDREN, "_adopts", False)
    before = set(ptable.own_children())
    yield
    for pid in set(ptable.own_children()) - before:  # elsewhere init would take them
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def test_on_windows_the_modules_import_and_say_what_does_not_work(tmp_path: Path) -> None:
    body = (
        "import sys, types, subprocess, selectors, tempfile, threading, platform, ctypes, msgspec\n"
        "sys.platform = 'win32'\n"
        "for name in ('fcntl', 'resource', 'termios', 'pwd'): sys.modules[name] = None\n"
        "sys.modules['msvcrt'] = types.ModuleType('msvcrt')\n"
        "import os, signal\n"
        "for name in ('killpg', 'setsid', 'getsid', 'getpgid', 'waitpid', 'WNOHANG', 'register_at_fork'):\n"
        "    delattr(os, name)\n"
        "for name in ('SIGKILL', 'SIGSTOP', 'SIGHUP', 'SIGCHLD', 'pthread_sigmask'): delattr(signal, name)\n"
        "from pathlib import Path\n"
        "from ralph.host import locks\n"
        "from ralph.host.process import raw_log, signals, start, supervise, tree\n"
        "with signals.StopSignal() as stop: print(stop.wait(0.01))\n"
        "print(locks.Owner.here('r').run)\n"
        "try: start.run(['dir'], cwd=Path('.'))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = run([sys.executable, "-c", body], cwd=tmp_path)
    assert done.out.decode().splitlines() == [
        "False",
        "r",
        "Unsupported Ralph cannot start and end process trees on Windows",
    ], done.err.decode()


def test_a_short_command_costs_little(tmp_path: Path) -> None:
    begun = time.monotonic()
    for _ in range(20):
        run(["true"], cwd=tmp_path)
    assert time.monotonic() - begun < 2


def _file(folder: Path, text: str, mode: int) -> str:
    path = folder / "program"
    path.write_text(text)
    path.chmod(mode)
    return str(path)
