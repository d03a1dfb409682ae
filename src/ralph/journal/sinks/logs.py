"""The logs of a run for people: the small ones of seed 000, and the log of the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ralph.core.agent import AgentEvent, Init, Limit, Retry, Text, ToolUse
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    AnyEvent,
    CheckEnded,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Noted,
    Proved,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    Recovered,
    RescueSaved,
    RolledBack,
    RunEnded,
    RunStarted,
    StepEnded,
    WaitEnded,
    WaitStarted,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.evidence import CheckResult
from ralph.core.names import safe_name
from ralph.core.text import clean, one_line
from ralph.core.verdict import Kind
from ralph.host.process.raw_log import parts_after
from ralph.journal.sinks.sink import Account, Sink, ending, headline, iso, notices, story_name, story_title, took
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.journal.workers import iteration_of

LIMIT = 100 * 1024
"""Bytes of `failure-context.log`, which is rotated."""
_LINES = 100
_LONGEST_LINE = 500
CAP = 1024 * 1024
"""Bytes of output per session. The end is kept, because it shows how the session went."""


def activity(record: Record, account: Account) -> list[str]:
    """`.ralph/activity.log` of seed 000: when each story's prompt was sent, and its length. Never its text."""
    event = record.event
    if not isinstance(event, IterationEnded) or not account.agents:
        return []
    lines = (
        f"{iso(t)} {story_name(event)} iteration={event.iteration} "
        + (f"prompt_length={agent.prompt}\n" if agent.prompt else "prompt\n")
        for t, agent in account.agents
    )
    return ["".join(lines)]


def sessions(record: Record, account: Account) -> list[str]:
    """`.ralph/sessions.log` of seed 000: one line for each iteration that did not finish its story."""
    event = record.event
    if not isinstance(event, IterationEnded) or event.completes or not event.story:
        return []
    reason = "in-review" if event.kind is Kind.ACCEPTED else event.kind.value
    # Colons divide the fields, so an id cannot have one.
    return [f"incomplete:{story_name(event).replace(':', '-')}:{int(record.t)}:{reason}\n"]


def failures(record: Record, account: Account) -> list[str]:
    """`.ralph/failure-context.log` of seed 000: the end of each failing check, and of tests that rolled back an
    iteration.
    """
    match record.event:
        case IterationEnded() as event:
            checks: Iterable[CheckResult] = (*account.checks, *account.rolled_back)
            when = f"{iso(record.t)} {story_name(event)}, iteration {event.iteration}"
        case Proved(results=results):
            checks, when = results, f"{iso(record.t)} final checks"
        case _:
            return []
    return [context(check, when) for check in checks if not check.passed]


def context(check: CheckResult, when: str) -> str:
    """A header and the last lines, indented so that output cannot imitate a header."""
    lines = [line[:_LONGEST_LINE] for line in clean(check.tail).splitlines()[-_LINES:]]
    while lines and sum(len(line.encode("utf-8", "replace")) + 5 for line in lines) > LIMIT // 2:
        lines = lines[len(lines) // 4 + 1 :]
    head = f"=== {when}: {one_line(check.name, 200)} failed ({ending(check)})\n"
    command = f"    $ {one_line(check.command, 500)}\n"
    return head + command + "".join(f"    {line}\n" for line in lines) + "\n"


class RunLog(Sink):
    """A readable log for each run: `run-ID.log` under `runs/` (seed 000) or `logs/` (seed 002).

    It holds the agent's output, up to a cap per session. The original is kept outside the workspace, where the agent
    cannot edit it; the log names its path.
    """

    def __init__(self, files: WorkspaceFiles, folder: Path) -> None:
        super().__init__(files, folder)
        self._lines: dict[int, list[str]] = {}
        """By iteration. Those of several workers are written one after the other, each when it has ended."""
        self._over: set[int] = {0}

    def __call__(self, record: Record, account: Account) -> None:
        number = iteration_of(record.event) if account.run.is_parallel else 0
        lines = self._lines.setdefault(number, [])
        lines += [f"{iso(record.t)} {line}\n" for line in describe(record.event)]
        if isinstance(record.event, AgentEnded) and record.event.raw:
            lines += [f"    | {line}\n" for line in agent_output(Path(record.event.raw))]
        if isinstance(record.event, IterationEnded):
            self._over.add(number)
        if not account.run_id or account.is_open:
            return
        is_last = isinstance(record.event, RunEnded)
        over = [number for number in self._lines if is_last or number in self._over]
        text = "".join(line for number in over for line in self._lines.pop(number))
        if text:
            self.files.append(self.path / f"run-{safe_name(account.run_id, 'run')}.log", text)


def agent_output(path: Path, cap: int = CAP) -> list[str]:
    """The lines an agent printed, the last `cap` bytes of them, after a note if some were left out."""
    tail, older = parts_after(path)
    data, dropped = b"", 0
    for part in (tail, older, path):
        try:
            with part.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                start = max(0, size - (cap - len(data)))
                stream.seek(start)
                data, dropped = stream.read(size - start) + data, dropped + start
        except OSError:
            continue
    lines = clean(data.decode("utf-8", "replace")).splitlines()
    is_whole = not dropped and not tail.exists()
    head = (
        []
        if is_whole
        else [f"(output is longer than {cap:,} bytes; the beginning is left out; see {one_line(str(path))})"]
    )
    return head + lines


def describe(event: AnyEvent) -> list[str]:
    """The lines for one record. Records that only matter to the loop have none."""
    match event:
        case RunStarted():
            return _run_started(event)
        case IterationStarted():
            name = one_line(event.story, 80) or event.mode.value
            title = one_line(event.title, 200)
            worker = f", worker {event.worker}" if event.worker else ""
            how = f"(attempt {event.attempt}{worker})"
            return [f"iteration {event.iteration}: {event.mode.value} {name} - {title} {how}"]
        case AgentStarted():
            return [f"  agent started: {one_line(event.step, 40)}, pid {event.pid}"]
        case AgentSaid(event=said):
            return [f"  {line}" for line in _said(said)]
        case AgentEnded():
            return _agent_ended(event)
        case StepEnded():
            return [f"  step {one_line(event.step, 60)}: {_step(event)}"]
        case CheckEnded(result=result):
            word = "passed" if result.passed else "failed"
            return [f"  check {one_line(result.name, 200)}: {word} ({ending(result)}, {took(result.seconds)})"]
        case Judged(verdict=verdict):
            return [f"  verdict: {verdict.kind.value}", *(f"    {one_line(r, 500)}" for r in verdict.reasons)]
        case RescueSaved(ref=ref):
            return [f"  the work is kept in {one_line(ref)}"]
        case RolledBack():
            return [f"  rolled back: {event.removed} removed, {event.rewritten} restored"]
        case Committed(commit=commit, message=message):
            return [f"  commit {one_line(commit)} {one_line(message, 200)}"]
        case IterationEnded():
            return _iteration_ended(event)
        case Queued() | QueueProving() | QueueProved() | Landing():
            return [f"  {line}" for line in _queue(event)]
        case _:
            return _between(event)


def _queue(event: AnyEvent) -> list[str]:
    match event:
        case Queued(commit=commit):
            return [f"in the merge queue: {one_line(commit, 40)}"]
        case QueueProving(onto=onto, worker=worker):
            return [f"proving the merged tree onto {one_line(onto, 40)}{f', worker {worker}' if worker else ''}"]
        case QueueProved(passed=True, seconds=seconds):
            return [f"proven on the merged tree ({took(seconds)})"]
        case QueueProved(why=why):
            return [f"failed on the merged tree: {one_line(why, 500)}"]
        case _:
            return ["merging"]


def _between(event: AnyEvent) -> list[str]:
    match event:
        case WaitStarted(until=until, why=why):
            return [f"waiting until {iso(until)}: {one_line(why, 300)}"]
        case WaitEnded():
            return ["continuing"]
        case WorkerStarted(worker=worker, where=where):
            return [f"worker {worker} started{f' on {one_line(where, 100)}' if where else ''}"]
        case WorkerLost(worker=worker, why=why):
            return [f"worker {worker} lost: {one_line(why, 300)}"]
        case Proved(results=()):
            return []
        case Proved():
            return [f"final checks {'passed' if event.passed else 'failed'} on tree {one_line(event.tree)}"]
        case Recovered(run=run, what=what):
            return [f"recovered run {one_line(run)}: {one_line(what, 500)}"]
        case Noted(text=text, warning=warning):
            return [f"{'warning: ' if warning else ''}{one_line(text, 500)}"]
        case RunEnded(reason=reason, detail=detail):
            return [f"run ended: {reason.value}{f' ({one_line(detail, 500)})' if detail else ''}"]
        case _:
            return []


def _run_started(event: RunStarted) -> list[str]:
    checks = ", ".join(one_line(check, 100) for check in event.checks) or "none; nothing can be proven"
    agent = f"{one_line(event.agent, 40)} {one_line(event.model, 80)}".strip()
    return [
        f"run {one_line(event.run)} of {one_line(event.name, 100)}: {event.done} of {event.total} stories done",
        f"  ralph {event.version}, agent {agent}, branch {one_line(event.branch, 200) or '(none)'}",
        f"  checks: {checks}",
    ]


def _said(said: AgentEvent) -> list[str]:
    match said:
        case Text(text):
            return [f"says: {one_line(text, 200)}"]
        case ToolUse(name, summary):
            return [f"uses {one_line(summary, 200) or one_line(name, 40)}"]
        case Init(model=model) if model:
            return [f"model {one_line(model, 80)}"]
        case Limit(rejected=True):
            return ["usage limit reached"]
        case Retry(attempt=attempt, status=status):
            return [f"the client retries (attempt {attempt}{f', status {status}' if status else ''})"]
        case _:
            return []


def _agent_ended(event: AgentEnded) -> list[str]:
    ended, outcome = event.ended, event.outcome
    code = f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"
    cost = f", ${outcome.cost_usd:.4f}" if outcome.cost_usd is not None else ""
    how = f"{ended.how.value}, {code}, {took(ended.seconds)}, {outcome.used.total} tokens{cost}"
    lines = [f"  agent ended: {how}"]
    if event.raw:
        lines.append(f"  output: {one_line(event.raw)}")
    return lines


def _step(event: StepEnded) -> str:
    if event.skipped:
        return f"skipped, {one_line(event.skipped, 200)}"
    tries = f" after {event.tries} tries" if event.tries > 1 else ""
    detail = f": {one_line(event.detail, 300)}" if event.detail and not event.ok else ""
    return f"{'ok' if event.ok else 'failed'}{tries}{detail}"


def _iteration_ended(event: IterationEnded) -> list[str]:
    head = f"iteration {event.iteration}: {event.kind.value} {story_name(event)} - {story_title(event)}"
    return [f"{head}: {headline(event)} ({took(event.seconds)})", *(f"  note: {note}" for note in notices(event))]
