from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from ralph.core.exit_codes import ExitCode
from ralph.host.process.signals import StopSignal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def later(seconds: float, act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, ExitCode.TERMINATED),
        (signal.SIGHUP, ExitCode.TERMINATED),
    ],
)
def test_a_signal_ends_a_wait_at_once_and_says_the_exit_code(number: signal.Signals, code: ExitCode) -> None:
    with StopSignal() as stop:
        begun = time.monotonic()
        timer = later(0.1, lambda: os.kill(os.getpid(), number))
        assert stop.wait(30)
        assert time.monotonic() - begun < 0.3
        timer.join()
    assert stop.requested
    assert not stop.urgent
    assert stop.signum == number
    assert stop.exit_code is code


def test_an_undisturbed_wait_lasts_its_time() -> None:
    with StopSignal() as stop:
        begun = time.monotonic()
        assert not stop.wait(0.15)
        assert time.monotonic() - begun >= 0.15
        assert stop.exit_code is None


def test_a_wait_after_a_request_returns_at_once() -> None:
    with StopSignal() as stop:
        stop.request(signal.SIGINT)
        begun = time.monotonic()
        assert stop.wait(30)
        assert stop.wait(30)
        assert time.monotonic() - begun < 0.2


def test_another_thread_can_ask_and_wake() -> None:
    with StopSignal() as stop:
        timer = later(0.05, stop.request)
        assert stop.wait(30)
        timer.join()
        assert stop.exit_code is ExitCode.TERMINATED


def test_a_thread_that_waits_is_woken_by_a_signal_to_the_process() -> None:
    with StopSignal() as stop:
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(stop.wait(30)))
        thread.start()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        thread.join(2)
        assert answers == [True]


def test_the_second_signal_is_urgent_but_its_echo_is_not() -> None:
    now = 100.0
    with StopSignal(clock=lambda: now) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        now += 0.01
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.requested, stop.urgent) == (True, False)
        now += 0.5
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.requested, stop.urgent) == (True, True)
        assert stop.signum == signal.SIGINT


def test_a_key_held_down_becomes_urgent() -> None:
    now = 100.0
    with StopSignal(clock=lambda: now) as stop:
        for _ in range(10):
            stop.request(signal.SIGINT)
            now += 0.03
        assert stop.urgent


def test_handlers_and_wakeup_are_put_back() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(n) for n in numbers]
    with StopSignal() as outer:
        with StopSignal() as inner:
            os.kill(os.getpid(), signal.SIGINT)
            assert (inner.requested, outer.requested) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert outer.requested
    assert [signal.getsignal(n) for n in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_other_signals_do_not_end_a_wait() -> None:
    old = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with StopSignal() as stop:
            timer = later(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
            begun = time.monotonic()
            assert not stop.wait(0.2)
            assert time.monotonic() - begun >= 0.2
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_outside_of_the_main_thread_it_counts_requests_only() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def work() -> None:
        with StopSignal() as stop:
            seen.append(signal.getsignal(signal.SIGINT))
            stop.request(signal.SIGINT)
            seen.append(stop.wait(5))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(5)
    assert seen == [before, True]


def test_under_nohup_a_hangup_stays_ignored() -> None:
    script = (
        "import os, signal; from ralph.host.process.signals import StopSignal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with StopSignal() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGHUP); stop.wait(0.05); print(stop.requested)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
