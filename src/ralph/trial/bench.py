"""`ralph bench`: the same three small stories for each agent, and what came of them.

On a scripted model the script does the work, and claims the second story before it is done. With a real service the
model does it; the checks are the same.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.agent import Tokens
from ralph.core.agent_traits import traits_of
from ralph.core.money import Basis
from ralph.core.ports import Agent
from ralph.trial.model import Turn
from ralph.trial.stage import REQUEST, Played, Stage

_CLAIM = '{"claim": "done"}\n'
_SECONDS = 1800.0


class Task(Struct, frozen=True):
    """A story of the project, with a solution for the script."""

    title: str
    criteria: tuple[str, ...]
    file: str
    solution: str
    check: str
    """Python that fails unless the story is done."""


TASKS = (
    Task(
        "Greet people by name",
        ("greet.py has a function greet(name) that returns `Hello, NAME!`", "without a name it returns `Hello!`"),
        "greet.py",
        'def greet(name=""):\n    return f"Hello, {name}!" if name else "Hello!"\n',
        'from greet import greet; assert greet("Ada") == "Hello, Ada!" and greet("") == "Hello!"',
    ),
    Task(
        "Turn titles into slugs",
        (
            "slug.py has a function slug(title): lower case, words of letters and digits joined by single hyphens",
            "there is no hyphen at either end, and an empty title gives an empty text",
        ),
        "slug.py",
        'import re\n\n\ndef slug(title):\n    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))\n',
        'from slug import slug; assert slug(" Ralph: The 2nd Loop! ") == "ralph-the-2nd-loop" and slug("") == ""',
    ),
    Task(
        "Find the median",
        (
            "median.py has a function median(numbers): the middle value, or the mean of the two middle ones",
            "an empty list raises ValueError, and the argument is not changed",
        ),
        "median.py",
        "def median(numbers):\n    if not numbers:\n        raise ValueError('no numbers')\n"
        "    ordered = sorted(numbers)\n"
        "    half = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[half]\n"
        "    return (ordered[half - 1] + ordered[half]) / 2\n",
        "from median import median; given = [3, 1, 2]; assert median(given) == 2 and given == [3, 1, 2]; "
        "assert median([4, 1, 3, 2]) == 2.5",
    ),
)


class Score(Struct, frozen=True, kw_only=True):
    """What one agent did."""

    agent: str
    model: str
    done: int
    stories: int
    false_claims: int
    """Sessions that claimed a story which its check refuted."""
    sessions: int
    calls: int | None
    """Requests to the model; None: not known."""
    tokens: int
    reports_usage: bool
    cost_usd: float | None
    """None: not known."""
    is_estimated: bool = False
    seconds: float
    code: int | None
    problem: str = ""
    """Why the run did not complete."""
    kept: str = ""
    """The folder of a run that did not complete."""


def run_bench(agent: Agent, model: str = "", *, max_cost: float | None = None) -> Score:
    """`max_cost`: dollars that the real service may cost. None: on a scripted model."""
    spend = max_cost is not None
    folder = Path(tempfile.mkdtemp(prefix="ralph-bench-"))
    config: dict[str, Any] = {"max_loops_per_task": 3, "transport_retries": 2}
    if model:
        config["agent"] = {"model": model}
    if spend:
        config["budget"] = {"run_usd": max_cost}
    stories = [
        {
            "title": task.title,
            "acceptanceCriteria": list(task.criteria),
            "verify": f"python3 -B -c '{task.check}'",
        }
        for task in TASKS
    ]
    stage = Stage(folder, agent, stories=stories, config=config, is_real=spend)
    began = time.monotonic()
    played = stage.play([] if spend else _turns(stage), seconds=_SECONDS)
    score = _score(agent, model, played, time.monotonic() - began, is_real=spend)
    if score.problem:
        return msgspec.structs.replace(score, kept=str(folder))
    shutil.rmtree(folder, ignore_errors=True)
    return score


def _turns(stage: Stage) -> list[Turn]:
    """The second story is claimed first without any work, then with it."""
    turns: list[Turn] = []
    for number, task in enumerate(TASKS):
        claim: list[Turn] = [{"write": [stage.path(REQUEST), _CLAIM]}, {"say": "Done."}]
        if number == 1:
            turns += claim
        turns += [{"write": [stage.path(task.file), task.solution]}, *claim]
    return turns


def _score(agent: Agent, model: str, played: Played, seconds: float, *, is_real: bool) -> Score:
    outcomes = played.outcomes
    cost, is_estimated = _cost(played)
    used = Tokens()
    for outcome in outcomes:
        used += outcome.used
    done = played.done
    return Score(
        agent=agent.NAME,
        model=model or next((outcome.model for outcome in outcomes if outcome.model), ""),
        done=sum(done),
        stories=len(done),
        false_claims=sum(kind == "rejected" for kind in played.verdicts),
        sessions=len(outcomes),
        calls=(sum(outcome.turns for outcome in outcomes) or None) if is_real else len(played.asked),
        tokens=used.total,
        reports_usage=traits_of(agent).reports_usage,
        cost_usd=cost,
        is_estimated=is_estimated,
        seconds=seconds,
        code=played.code,
        problem="" if all(done) else played.why_unfinished,
    )


def _cost(played: Played) -> tuple[float | None, bool]:
    """By the run's own account: what the client reported, or an estimate from list prices. Unknown if any part is."""
    charges = played.of("Charged")
    costs = [charge["usd"] for charge in charges if charge.get("usd") is not None]
    if len(costs) < len(charges) or not costs:
        return None, False
    return sum(costs), any(charge["basis"] != Basis.REPORTED for charge in charges)
