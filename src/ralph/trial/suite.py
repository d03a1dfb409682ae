"""Runs the scenarios with a real client, and applies them to recorded streams."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.agent import Outcome, Trouble
from ralph.core.agent_traits import traits_of
from ralph.core.errors import RalphError
from ralph.core.ports import Agent, events_of
from ralph.engine.agent_run import GaveUp, Listener, TurnedAway
from ralph.host.process.supervise import Ending, How
from ralph.trial.scenarios import PROMISE, SCENARIOS, Scenario
from ralph.trial.stage import Played, Stage

_LARGEST = 16 * 1024
"""Bytes of a file that a client left in its folder, to be recorded. Of a longer log, its end is."""
_SHORT = 200
"""Characters of a line that is recorded although it gives no event."""
_LINES = re.compile(r"(?:Line \d+ of a long text that has to arrive\.(?:\\+n|\s)*)+")


class Take(Struct, frozen=True, kw_only=True):
    """One process of a client, as it was."""

    stdout: str
    stderr: str = ""
    code: int | None = None
    files: dict[str, str] = {}
    """What it left in its own folder."""


class Recording(Struct, frozen=True, kw_only=True):
    agent: str
    version: str = ""
    scenario: str
    takes: tuple[Take, ...]


class Mark(Struct, frozen=True, kw_only=True):
    """How one scenario went."""

    scenario: str
    title: str
    problems: tuple[str, ...] = ()
    cannot: str = ""
    """Why the client cannot do this: then it was not tried."""
    seconds: float = 0.0
    recording: Recording | None = None
    kept: str = ""
    """The folder of a trial that failed."""

    @property
    def passed(self) -> bool:
        return not self.problems and not self.cannot


def rehearse_all(
    agent: Agent, only: Iterable[str] = (), *, program: str = "", version: str = "", keep: bool = False
) -> Iterator[Mark]:
    """Every scenario with the real client, one after the other."""
    wanted = set(only)
    for scenario in SCENARIOS:
        if not wanted or scenario.name in wanted:
            yield try_one(agent, scenario, program=program, version=version, keep=keep)


def why_not(agent: Agent, scenario: Scenario) -> str:
    """Why a client cannot do this, from its traits."""
    traits = traits_of(agent)
    if scenario.name in traits.cannot:
        return traits.cannot[scenario.name]
    if scenario.name == "guard" and not agent.HOOKS:
        return "the client has no hooks: use the sandbox"
    return "the client reports no usage" if scenario.name == "usage" and not traits.reports_usage else ""


def try_one(agent: Agent, scenario: Scenario, *, program: str = "", version: str = "", keep: bool = False) -> Mark:
    if reason := why_not(agent, scenario):
        return Mark(scenario=scenario.name, title=scenario.title, cannot=reason)
    folder = Path(tempfile.mkdtemp(prefix="ralph-trial-"))
    began = time.monotonic()
    try:
        stage = Stage(folder, agent, program=program, stories=scenario.stories, config=scenario.config)
        scenario.prepare(stage)
        played = stage.play(scenario.turns(stage), *scenario.arguments, meanwhile=scenario.meanwhile)
        if played.asked:
            problems = [*scenario.heard(played.outcomes), *scenario.seen(played)]
        else:  # a run that never began must not pass as one that was right to fail
            problems = [f"the client sent no request to the model: {played.why_unfinished}"]
        recording = record(agent, scenario.name, version, played)
    except RalphError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except Exception as error:  # noqa: BLE001 - an agent on trial may do anything
        problems, recording = [f"{type(error).__name__}: {error}"], None
    if not problems and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return Mark(
        scenario=scenario.name,
        title=scenario.title,
        problems=tuple(problems),
        seconds=time.monotonic() - began,
        recording=recording,
        kept=str(folder) if problems or keep else "",
    )


def record(agent: Agent, scenario: str, version: str, played: Played) -> Recording:
    """The client's output in this trial, without paths of this machine."""
    takes = []
    for event in played.of("AgentEnded"):
        raw = Path(event["raw"])
        folder = raw.parent.parent / "clients" / raw.stem
        takes.append(
            Take(
                stdout=_neutral(_text(raw), played.stage),
                stderr=_neutral(_text(raw.with_suffix(".err.log")), played.stage)[-4000:],
                code=event["ended"].get("code"),
                files={
                    str(path.relative_to(folder)): _neutral(_text(path), played.stage)[-_LARGEST:]
                    for path in _left(folder, with_logs=bool(event["outcome"].get("trouble")))
                },
            )
        )
    return Recording(
        agent=agent.NAME, version=version, scenario=scenario, takes=tuple(shortened(agent, take) for take in takes)
    )


def shortened(agent: Agent, take: Take) -> Take:
    """Without what makes no difference to the reader: files that it does not need, and long lines that say nothing."""
    wanted = _outcome(agent, take)
    for name in take.files:
        less = msgspec.structs.replace(take, files={key: text for key, text in take.files.items() if key != name})
        take = less if _outcome(agent, less) == wanted else take
    read = agent.reader()
    kept = []
    for line in take.stdout.splitlines(keepends=True):
        found = events_of(read, line.encode().rstrip(b"\r\n"), lambda _: None)
        if found or len(line) <= _SHORT:
            kept.append(line)
    less = msgspec.structs.replace(take, stdout="".join(kept))
    return less if _outcome(agent, less) == wanted else take


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _left(folder: Path, *, with_logs: bool) -> Iterator[Path]:
    """`with_logs`: also those in its folders, which may tell why the client failed."""
    if not folder.is_dir():
        return
    for path in sorted({*folder.iterdir(), *(folder.rglob("*.log") if with_logs else ())}):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix == ".log" or path.stat().st_size <= _LARGEST:
            yield path


_INSTALLED = re.compile(r"(?:/[^\s/\"'()]+)+(?=/node_modules/)")
"""Where a client is, as its stack traces tell."""


def _neutral(text: str, stage: Stage) -> str:
    """With the same paths wherever it was recorded, and without the long prompt, which some clients repeat."""
    text = _LINES.sub("…", text)
    text = text.replace(str(stage.folder), "/trial").replace(f":{stage.port}", ":8000")
    text = _INSTALLED.sub("/client", text)
    return re.sub(r"ralph-trial-\w+", "ralph-trial", text)


def replay(agent: Agent, recording: Recording) -> list[Outcome]:
    """What the adapter's reader makes of a recording."""
    return [_outcome(agent, take) for take in recording.takes]


def _outcome(agent: Agent, take: Take) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="ralph-replay-") as name:
        for file, text in take.files.items():
            path = Path(name, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _read(agent, take, Path(name))


def _read(agent: Agent, take: Take, folder: Path) -> Outcome:
    """As a run reads it."""
    listener = Listener(agent.reader(), lambda _: None, 1, PROMISE)
    try:
        listener.block(take.stdout.encode().rstrip(b"\n"))
        for line in take.stderr.encode().splitlines() if listener.reads_errors else ():
            listener.error(line)
        listener.finish(Ending(how=How.EXITED, code=take.code, err_tail=take.stderr.encode()), folder)
    except TurnedAway:
        return msgspec.structs.replace(listener.outcome, trouble=Trouble.AUTHENTICATION)
    except GaveUp:
        pass
    return listener.outcome


def judge_recording(agent: Agent, recording: Recording) -> list[str]:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == recording.scenario)
    return list(scenario.heard(replay(agent, recording)))


def load_recording(path: Path) -> Recording:
    return msgspec.json.decode(path.read_bytes(), type=Recording)
