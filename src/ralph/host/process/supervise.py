"""Supervise one agent process from start to end: output, time, silence, stop requests, leftover processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.host.process.enclosure import Enclosure
from ralph.host.process.growth import Growth
from ralph.host.process.output import LineSplitter, Oversize, Pump, Tail, split_block
from ralph.host.process.raw_log import RawLog
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import Allowance, CannotStart, before_start, finish, start
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import Tree, cpu_seconds

_TICK = 1.0
"""Seconds between updates of the list of processes in the tree."""
_SWEEP_GRACE = 2.0
"""Maximum seconds between SIGTERM and SIGKILL for processes an agent left behind."""
_ERR_TAIL = 64 * 1024
_TORN = 4096

OnLine = Callable[[bytes, bool], None]
"""A line without its newline, and whether it exceeded the limit and is only the beginning."""


class Command(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: Path
    env: dict[str, str]
    """The complete environment: nothing is inherited."""
    stdin: bytes = b""
    allowance: Allowance = Allowance()
    enclosure: Enclosure | None = None


class Limits(Struct, frozen=True):
    """Seconds; None: no limit."""

    total: float | None = None
    idle: float | None = None
    """Seconds without output and without another sign of life."""
    grace: float = 10.0
    """From SIGTERM to SIGKILL."""
    linger: float | None = None
    """From its final line to its end."""


class How(StrEnum):
    EXITED = "exited"
    TIMED_OUT = "timed out"
    SILENT = "silent"
    LINGERED = "lingered"
    STOPPED = "stopped"
    OVER_LIMIT = "over a limit"
    FAILED_TO_START = "failed to start"


class Ending(Struct, frozen=True, kw_only=True):
    how: How
    code: int | None = None
    signal: int | None = None
    duration: float = 0.0
    ran: float = 0.0
    """Seconds until it exited or was told to; the grace period before a kill is not included."""
    out_bytes: int = 0
    err_tail: bytes = b""
    torn: bytes = b""
    """The beginning of a last line without a newline."""
    last_output_age: float = 0.0
    """Seconds from the last output, or from the start when there was none, to the end."""
    swept: int = 0
    """Processes other than the agent that outlived it or had to be killed."""
    survivors: tuple[ProcessId, ...] = ()
    """Processes that could not be ended."""
    message: str = ""
    """Why it failed to start, and what to do."""


class Watcher(Struct, frozen=True, kw_only=True):
    """What a caller sees of an agent process. An exception from a callable ends the agent and is passed on."""

    on_line: OnLine
    on_block: Callable[[bytes], None] | None = None
    """Gets many lines at once, joined by newlines, instead of `on_line`. A line over the limit, and a last one without
    a newline, still go to `on_line`.
    """
    on_error: Callable[[bytes], None] | None = None
    """Gets each line of stderr, up to a limit of its length."""
    on_start: Callable[[ProcessId], None] | None = None
    is_final: Callable[[], bool] | None = None
    """Asked after each line or block: whether the agent should end."""
    signs_of_life: Callable[[], float] | None = None
    """A number that changes while a silent agent is working."""
    raw: RawLog | None = None
    raw_err: RawLog | None = None


def supervise(
    command: Command,
    limits: Limits,
    watcher: Watcher,
    stop: StopSignal | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Run an agent to its end. When this returns or raises, nothing the agent started is alive."""
    if stop is not None and stop.requested:
        return Ending(how=How.STOPPED)
    begun = clock()
    before = before_start(command.allowance)
    try:
        process = start(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            stdin=bool(command.stdin),
            before=before,
            enclosure=command.enclosure,
        )
    except CannotStart as error:
        message = f"{error}; {error.hint}" if error.hint else str(error)
        return Ending(how=How.FAILED_TO_START, duration=clock() - begun, message=message)
    tree = Tree(process)
    problem = ""
    try:
        if watcher.on_start is not None:
            watcher.on_start(tree.root)
        watch = _Watch(tree, command, limits, watcher, stop, clock)
        with contextlib.closing(watch.pump):
            ending = watch.to_the_end(begun)
    except BaseException:
        tree.end(grace=0)
        raise
    finally:
        finish(process)
        if command.enclosure is not None:
            problem = command.enclosure.end(process)
    return msgspec.structs.replace(ending, message=ending.message or problem)


class _Output:
    """The agent's output: split into lines, written to the raw logs, and when the last of it arrived."""

    def __init__(self, watcher: Watcher, clock: Callable[[], float]) -> None:
        self._watcher = watcher
        self._clock = clock
        self._lines = LineSplitter()
        self._errors = LineSplitter()
        self.err_tail = Tail(_ERR_TAIL)
        self.out_bytes = 0
        self.last = clock()
        self.final: float | None = None
        """When the final line came."""
        self.torn = b""

    def out(self, data: bytes) -> None:
        self.last = self._clock()
        self.out_bytes += len(data)
        if self._watcher.raw is not None:
            self._watcher.raw.write(data)
        for block in self._lines.blocks(data):
            if self._watcher.on_block is not None and not isinstance(block, Oversize):
                self._watcher.on_block(block)
                self._note_final()
            else:
                for line in split_block(block):
                    self._line(line)

    def err(self, data: bytes) -> None:
        self.last = self._clock()
        self.err_tail.feed(data)
        if self._watcher.raw_err is not None:
            self._watcher.raw_err.write(data)
        if self._watcher.on_error is not None:
            for block in self._errors.blocks(data):
                for line in split_block(block):
                    self._watcher.on_error(line.head if isinstance(line, Oversize) else line)

    def flush(self) -> None:
        for line in self._lines.flush():
            self.torn = (line.head if isinstance(line, Oversize) else line)[:_TORN]
            self._line(line)

    def _line(self, line: bytes | Oversize) -> None:
        if isinstance(line, Oversize):
            self._watcher.on_line(line.head, True)
            return
        self._watcher.on_line(line, False)
        self._note_final()

    def _note_final(self) -> None:
        if self._watcher.is_final is None or not self._watcher.is_final():
            self.final = None
        elif self.final is None:
            self.final = self._clock()


class _Watch:
    def __init__(
        self,
        tree: Tree,
        command: Command,
        limits: Limits,
        watcher: Watcher,
        stop: StopSignal | None,
        clock: Callable[[], float],
    ) -> None:
        self._tree, self._process = tree, tree.process
        self._allowance, self._limits, self._stop, self._clock = command.allowance, limits, stop, clock
        self._output = _Output(watcher, clock)
        wake = stop.fileno() if stop else None
        self.pump = Pump(self._process, command.stdin, self._output.out, self._output.err, wake)
        self._silence = _Silence(limits.idle, watcher.signs_of_life) if limits.idle is not None else None
        self._looked = clock()
        self._growth = Growth(command.allowance.folders) if command.allowance.disk else None
        self._excess = ""
        """Which limit the tree exceeds."""

    def to_the_end(self, begun: float) -> Ending:
        how = self._until_over(begun)
        ran = self._clock() - begun
        swept = 0
        if how is not How.EXITED:
            grace = 0 if self._stop is not None and self._stop.urgent else self._limits.grace
            ended = self._tree.end(grace=grace, meanwhile=self._meanwhile)
            self._process.poll()
            swept = ended.killed - (1 if self._process.returncode == -9 and ended.killed else 0)
        over = self._clock()
        self.pump.drain()
        left = self._tree.end(grace=min(self._limits.grace, _SWEEP_GRACE), meanwhile=self._meanwhile)
        self.pump.drain()
        self._output.flush()
        code = self._process.returncode
        return Ending(
            how=how,
            code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            duration=over - begun,
            ran=ran,
            out_bytes=self._output.out_bytes,
            err_tail=self._output.err_tail.value(),
            torn=self._output.torn,
            last_output_age=max(over - self._output.last, 0.0),
            swept=swept + left.found,
            survivors=left.survivors,
            message=self._excess,
        )

    def _until_over(self, begun: float) -> How:
        while self._process.poll() is None:
            now = self._clock()
            if self._stop is not None and self._stop.requested:
                return How.STOPPED
            if self._limits.total is not None and now >= begun + self._limits.total:
                return How.TIMED_OUT
            final, linger = self._output.final, self._limits.linger
            if final is not None and linger is not None and now >= final + linger:
                return How.LINGERED
            if self._silence is not None and self._silence.is_over(now, self._output.last):
                return How.SILENT
            if self._look(now):
                return How.OVER_LIMIT
            self._turn(self._patience(now, begun))
        return How.EXITED

    def _patience(self, now: float, begun: float) -> float:
        """Seconds until the next check is due, if nothing happens before."""
        times = [now + _TICK]
        if self._limits.total is not None:
            times.append(begun + self._limits.total)
        if self._output.final is not None and self._limits.linger is not None:
            times.append(self._output.final + self._limits.linger)
        if self._silence is not None:
            times.append(self._silence.next_look(self._output.last))
        return max(min(times) - now, 0.0)

    def _look(self, now: float) -> bool:
        """Whether the tree uses more than it may."""
        if now - self._looked >= _TICK:
            self._looked = now
            self._tree.look()
            allowed = self._allowance
            processes, memory = self._tree.usage() if allowed.processes or allowed.memory else (0, 0)
            name = allowed.settings.format
            if allowed.processes and processes > allowed.processes:
                self._excess = f"it started {processes:,} processes; {name('processes')} is {allowed.processes:,}"
            elif allowed.memory and memory > allowed.memory:
                used, most = memory / 1e6, allowed.memory / 1e6
                self._excess = f"its processes use {used:,.0f} MB of memory; {name('memory_mb')} is {most:,.0f}"
            elif allowed.cpu and (spent := cpu_seconds(self._tree.root)) > allowed.cpu:
                self._excess = f"it used {spent:,.0f} s of processor time; {name('cpu_seconds')} is {allowed.cpu:,}"
            elif self._growth is not None and (grown := self._growth.over(allowed.disk)):
                used, most = grown / 1e6, allowed.disk / 1e6
                self._excess = f"it wrote {used:,.0f} MB; {name('disk_mb')} is {most:,.0f}"
        return bool(self._excess)

    def _turn(self, seconds: float) -> None:
        if self.pump.turn(seconds) and self._stop is not None:
            self._stop.drain()

    def _meanwhile(self, seconds: float) -> bool:
        self._turn(seconds)
        return self._stop is not None and self._stop.urgent


class _Silence:
    """No output for `idle` seconds, nor any other sign of life in them."""

    def __init__(self, idle: float, signs_of_life: Callable[[], float] | None) -> None:
        self._idle = idle
        self._signs = signs_of_life
        self._step = idle / 4
        self._since = 0.0
        """When the silence began: at the last output, or at the last check that saw a sign of life."""
        self._output = -1.0
        self._sign: float | None = None
        self._looked = 0.0

    def is_over(self, now: float, last_output: float) -> bool:
        if last_output != self._output:
            self._output = self._since = self._looked = last_output
            self._sign = None
        if self._signs is not None and now - self._looked >= self._step:
            self._looked = now
            sign = self._signs()
            if self._sign is not None and sign != self._sign:
                self._since = now
            self._sign = sign
        return now - self._since >= self._idle

    def next_look(self, last_output: float) -> float:
        if last_output != self._output:
            return last_output
        end = self._since + self._idle
        return end if self._signs is None else min(end, self._looked + self._step)
