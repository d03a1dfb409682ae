"""`ralph bench review`: how many known defects a reviewer finds, and how much good work it objects to.

A script does the work of every story in a real run, and the reviewer reviews it there, once, as in any run. On a
scripted model the verdicts alternate: then the figures only show that the procedure works.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.core.money import Basis
from ralph.core.plan import Mode
from ralph.core.ports import Agent
from ralph.core.verdict import Kind
from ralph.prompts.templates import REVIEWERS
from ralph.trial.model import Turn
from ralph.trial.review_cases import Case, check, draw, project
from ralph.trial.stage import REQUEST, Played, Stage

_SECONDS = 4 * 3600.0
_MOST_REVIEWS = 10
_STEP = 4
"""Reviews after which the progress is told again."""
_UNUSABLE = (Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT)
"""How a review ends that the loop repeats until the story is set aside. After any other end it was not given."""
_PATIENCE = {
    "no_progress_threshold": 0,
    "same_error_threshold": 0,
    "retry_rounds": 0,
    "crash_loop_threshold": 0,
}


class Said(StrEnum):
    APPROVED = "approved"
    OBJECTED = "objected"
    NOTHING = "nothing"


class Reviewer(Struct, frozen=True, kw_only=True):
    """As the settings name one. `page`: of the library, or a file of the workspace, whose text is `text`."""

    name: str
    agent: Agent
    model: str = ""
    page: str = ""
    text: str = ""
    command: tuple[str, ...] = ()


class Judgement(Struct, frozen=True, kw_only=True):
    kind: str
    story: str
    is_defective: bool
    said: Said
    findings: tuple[str, ...] = ()
    sessions: int = 1
    seconds: float = 0
    tokens: int = 0
    cost_usd: float | None = None


class Rate(Struct, frozen=True):
    """A share, with the bounds between which it lies with 95 % confidence (Wilson)."""

    count: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.count / self.of if self.of else 0.0


class Result(Struct, frozen=True, kw_only=True):
    """What one reviewer made of all cases."""

    reviewer: str
    agent: str
    model: str
    page: str
    recall: Rate
    """Of the stories with a defect: those it objected to."""
    false_alarms: Rate
    """Of the good stories: those it objected to."""
    undecided: int
    """Stories it gave no usable verdict on. They count as not objected to."""
    cases: int
    judgements: tuple[Judgement, ...]
    cost_usd: float | None
    """None: not known."""
    is_estimated: bool
    seconds: float
    """In reviews alone."""
    is_scripted: bool
    problem: str = ""
    kept: str = ""

    @property
    def gain(self) -> float:
        """How much better than chance: 1 is perfect, 0 is a reviewer that objects to good and bad alike."""
        return self.recall.share - self.false_alarms.share

    @property
    def tells_good_from_bad(self) -> bool:
        return self.recall.low > self.false_alarms.high


def measure(
    reviewer: Reviewer,
    seed: int,
    *,
    only: Sequence[str] = (),
    rounds: int = 1,
    max_cost: float | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Result:
    """`max_cost`: dollars that the real service may cost. None: on a scripted model."""
    judgements: list[Judgement] = []
    costs: list[tuple[float | None, bool]] = []
    problem = kept = ""
    cases = [half for number in range(rounds) for half in draw(seed + number, only)]
    for number, half in enumerate(cases, 1):
        report(f"{reviewer.name}: {len(half)} reviews, part {number} of {len(cases)} …")
        spent = sum(cost or 0 for cost, _ in costs)
        if max_cost is not None and spent >= max_cost:
            problem = f"the ${max_cost:g} of --max-cost are spent"
            break
        folder = Path(tempfile.mkdtemp(prefix="project-"))
        played = _play(folder, reviewer, half, None if max_cost is None else max_cost - spent, report)
        found = list(_judgements(half, played))
        judgements += found
        costs.append(_cost(played))
        if len(found) == len(half):
            shutil.rmtree(folder, ignore_errors=True)
            continue
        problem, kept = played.why_unfinished, str(folder)
        break
    known = all(cost is not None for cost, _ in costs) and bool(costs)
    return Result(
        reviewer=reviewer.name,
        agent=reviewer.agent.NAME,
        model=reviewer.model,
        page=reviewer.page,
        recall=objections(one for one in judgements if one.is_defective),
        false_alarms=objections(one for one in judgements if not one.is_defective),
        undecided=sum(one.said is Said.NOTHING for one in judgements),
        cases=sum(map(len, cases)),
        judgements=tuple(judgements),
        cost_usd=sum(cost or 0 for cost, _ in costs) if known else None,
        is_estimated=any(is_estimated for _, is_estimated in costs),
        seconds=sum(one.seconds for one in judgements),
        is_scripted=max_cost is None,
        problem=problem,
        kept=kept,
    )


def objections(judgements: Iterable[Judgement]) -> Rate:
    said = [one.said is Said.OBJECTED for one in judgements]
    return Rate(sum(said), len(said), *wilson(sum(said), len(said)))


def wilson(count: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Bounds of a share. They stay between 0 and 1, and say something about 0 of 16, too."""
    if not of:
        return 0.0, 1.0
    share, square = count / of, z * z / of
    middle, half = share + square / 2, z * math.sqrt(share * (1 - share) / of + square / (4 * of))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def cap_for(result: Result) -> int:
    """Two reviews that find something, then as many as good work needs to be approved with a probability of 95 %."""
    rate = result.false_alarms.share
    more = 1 if rate <= 0.05 else math.ceil(math.log(0.05) / math.log(rate)) if rate < 1 else _MOST_REVIEWS
    return min(2 + more, _MOST_REVIEWS)


def settings_for(result: Result) -> dict[str, str]:
    """The settings that make it the reviewer."""
    chosen = f"{result.agent}/{result.model}" if result.model else result.agent
    who = {"review.agent": result.agent, "review.model": result.model, "review.reviewers": ""}
    if result.page:
        who = {"review.reviewers": f"{result.page}@{chosen}"}
    return who | {"review.cap": str(cap_for(result))}


def together(results: Sequence[Result]) -> tuple[Rate, Rate]:
    """Recall and false alarms if each story has to be approved by all of them."""
    joined = []
    for same in zip(*(result.judgements for result in results), strict=True):
        objects = next((one for one in same if one.said is Said.OBJECTED), same[0])
        joined.append(objects)
    return (
        objections(one for one in joined if one.is_defective),
        objections(one for one in joined if not one.is_defective),
    )


def _play(
    folder: Path, reviewer: Reviewer, cases: Sequence[Case], max_cost: float | None, report: Callable[[str], None]
) -> Played:
    model = reviewer.model
    stage = Stage(
        folder,
        reviewer.agent,
        stories=[{"title": case.story.title, "acceptanceCriteria": list(case.story.criteria)} for case in cases],
        config={
            "agent": {"name": "scripted"},
            "checks": [check()],
            "review": {"when": "always", "cap": 1, "on_cap": "fail", "on_stalemate": "fail"}
            | {"agent": reviewer.agent.NAME, "command": list(reviewer.command)}
            | {"reviewers": [reviewer.page] if reviewer.page else []},
            "circuit_breaker": _PATIENCE,
        }
        | ({"budget": {"run_usd": max_cost}} if max_cost is not None else {}),
        is_real=max_cost is not None,
        about="A small shop",
    )
    if reviewer.page and reviewer.page not in REVIEWERS:
        stage.commit({reviewer.page: reviewer.text})
    stage.commit(project())
    script = folder / "work.json"
    script.write_text(json.dumps({"stories": {f"S-{n}": [_work(case)] for n, case in enumerate(cases, 1)}}))
    chosen = ["--review-model", model or stage.rehearsal.model] if model or stage.rehearsal.model else []
    turns = [] if stage.is_real else _turns(stage, len(cases))

    def follow(stage: Stage, process: subprocess.Popen[bytes]) -> None:
        """A real review takes minutes: say from time to time how many there are."""
        end, told = time.monotonic() + _SECONDS, 0
        while process.poll() is None and time.monotonic() < end:
            if (done := _reviews(stage)) >= told + _STEP:
                told = done
                report(f"  {done} of {len(cases)} reviews")
            time.sleep(0.5)

    return stage.play(turns, "--agent-script", str(script), *chosen, meanwhile=follow)


def _reviews(stage: Stage) -> int:
    journals = (path.read_bytes() for path in stage.state.glob("*/runs/*/events.jsonl"))
    return sum(
        b'"IterationEnded"' in line and b'"mode":"review"' in line for text in journals for line in text.splitlines()
    )


def _work(case: Case) -> dict[str, list[object]]:
    made = case.story.work(is_defective=case.is_defective)
    return {"implement": [*({"write": {"path": path, "text": text}} for path, text in made.items()), "claim"]}


def _turns(stage: Stage, cases: int) -> list[Turn]:
    objected = {"verdict": "changes_requested", "findings": [{"text": "The scripted model objects to every other one"}]}
    return [
        {"answer": [stage.path(REQUEST), {"review": {"verdict": "approved"} if number % 2 else objected}]}
        for number in range(cases)
    ]


def _judgements(cases: Sequence[Case], played: Played) -> Iterator[Judgement]:
    ends = [event for event in played.of("IterationEnded") if event["mode"] == Mode.REVIEW]
    answers = {event["iteration"]: event["evidence"].get("answer") or {} for event in played.of("Judged")}
    for number, case in enumerate(cases, 1):
        given = [event for event in ends if event["story"] == f"S-{number}"]
        settled = next((event for event in given if event["kind"] == Kind.ACCEPTED), None)
        if settled is None and not any(event["kind"] in _UNUSABLE for event in given):
            continue
        yield Judgement(
            kind=case.story.kind,
            story=case.story.title,
            is_defective=case.is_defective,
            said=_said(settled),
            findings=_findings(answers.get(settled["iteration"], {})) if settled is not None else (),
            sessions=len(given),
            seconds=sum(event.get("seconds", 0) for event in given),
            tokens=sum(sum(event.get("tokens", {}).values()) for event in given),
            cost_usd=sum(event.get("cost_usd") or 0 for event in given) or None,
        )


def _findings(answer: dict[str, Any]) -> tuple[str, ...]:
    listed = [finding.get("text", "") for finding in answer.get("findings") or ()]
    return tuple(listed or filter(None, [answer.get("feedback", "")]))


def _said(settled: dict[str, Any] | None) -> Said:
    if settled is None:
        return Said.NOTHING
    return Said.APPROVED if settled.get("completes") else Said.OBJECTED


def _cost(played: Played) -> tuple[float | None, bool]:
    """Of the reviews: what the client reported, or an estimate from list prices. Unknown if any part is."""
    reviews = {event["iteration"] for event in played.of("IterationStarted") if event["mode"] == Mode.REVIEW}
    charges = [charge for charge in played.of("Charged") if charge["iteration"] in reviews]
    if not charges or any(charge.get("usd") is None for charge in charges):
        return None, False
    return sum(charge["usd"] for charge in charges), any(charge["basis"] != Basis.REPORTED for charge in charges)
