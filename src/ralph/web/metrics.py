"""`/metrics`: live runs and the last ones in the text format of Prometheus (0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ralph.core.text import one_line
from ralph.journal.run_state import RunState
from ralph.journal.workers import WorkerState
from ralph.state.runs import RUN_ID
from ralph.views.catalog import cards, find_journal, folded, open_questions
from ralph.views.documents import LIVE
from ralph.workspace.runs import Standing

TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LAST = 20
"""How many runs that are not alive are told: every label of every one is a time series of its own."""

METRICS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "ralph_runs": ("gauge", ("state",), "Runs on this machine, by what they are doing."),
    "ralph_run_info": ("gauge", ("run", "plan", "agent"), "Always 1; which plan and agent a run has."),
    "ralph_stories": ("gauge", ("run", "state"), "Stories of the plan, by state."),
    "ralph_story_grades": ("gauge", ("run", "grade"), "Finished stories, by grade of proof."),
    "ralph_iterations_total": ("counter", ("run", "verdict"), "Finished iterations, by verdict."),
    "ralph_tokens_total": ("counter", ("run", "kind"), "Tokens of finished sessions, by kind."),
    "ralph_cost_usd_total": ("counter", ("run",), "Cost of finished sessions in dollars, as far as it is known."),
    "ralph_run_seconds": ("gauge", ("run",), "Seconds from the start of a run to its last event."),
    "ralph_agent_seconds_total": ("counter", ("run",), "Seconds in finished sessions."),
    "ralph_open_questions": ("gauge", ("run",), "Questions that nobody has answered."),
    "ralph_queue_length": ("gauge", ("run",), "Candidates in the merge queue."),
    "ralph_workers": ("gauge", ("run", "state"), "Workers, by state."),
}
"""Name → type, labels and help. All that is ever told."""

Sample = tuple[str, tuple[str, ...], float]


def exposition(env: Mapping[str, str]) -> bytes:
    samples: dict[str, list[Sample]] = {name: [] for name in METRICS}
    for sample in _samples(env):
        samples[sample[0]].append(sample)
    return "".join(_family(name, found) for name, found in samples.items()).encode()


def _family(name: str, samples: list[Sample]) -> str:
    kind, labels, told = METRICS[name]
    lines = [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
    for _, values, figure in samples:
        named = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
        lines.append(f"{name}{{{named}}} {figure!r}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _samples(env: Mapping[str, str]) -> Iterator[Sample]:
    known = cards(env)
    counts = Counter(card.standing for card in known)
    for standing in Standing:
        yield "ralph_runs", (standing.value,), counts[standing]
    live = [card for card in known if card.standing in LIVE]
    ended = [card for card in known if card.standing not in LIVE and RUN_ID.fullmatch(card.run)]
    for card in (*live, *ended[:_LAST]):
        journal = find_journal(card.run, env)
        if journal is not None and card.started:
            yield "ralph_run_info", (card.run, one_line(card.plan, 100), one_line(card.agent, 100)), 1
            with folded(journal) as (state, _):
                found = list(_of_run(card.run, state, len(open_questions(state, env))))
            yield from found


def _of_run(run: str, state: RunState, questions: int) -> Iterator[Sample]:
    stories = Counter(story.state.value for story in state.stories.values())
    tokens = state.tokens
    for name, counts in (
        ("ralph_stories", stories),
        ("ralph_story_grades", state.grades),
        ("ralph_iterations_total", {kind.value: count for kind, count in state.kinds.items()}),
        (
            "ralph_tokens_total",
            {
                "input": tokens.input,
                "output": tokens.output,
                "cache_read": tokens.cache_read,
                "cache_write": tokens.cache_write,
            },
        ),
    ):
        yield from ((name, (run, what), count) for what, count in counts.items())
    if state.cost_usd is not None:
        yield "ralph_cost_usd_total", (run,), state.cost_usd
    yield "ralph_run_seconds", (run,), max(state.now - state.started_at, 0)
    yield "ralph_agent_seconds_total", (run,), state.agent_seconds
    yield "ralph_open_questions", (run,), questions
    yield "ralph_queue_length", (run,), len(state.parallel.queue)
    if state.is_parallel:
        workers = Counter(worker.state for worker in state.parallel.known.values())
        yield from (("ralph_workers", (run, kind.value), workers[kind]) for kind in WorkerState)
