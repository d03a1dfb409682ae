"""From the records of a run to its spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core import events as told
from ralph.core.agent import Init, Limit, Outcome, Retry, Text, Tokens, ToolUse, Trouble
from ralph.core.control import Verb
from ralph.core.events import AnyEvent, Record
from ralph.core.evidence import CheckResult, Ended, Evidence, How
from ralph.core.money import Basis
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.requests import Request
from ralph.core.trace_context import TraceContext
from ralph.core.verdict import Kind, Verdict
from ralph.journal.records import read
from ralph.traces.fold import KILLED, Tracer
from ralph.traces.span import Span, Status
from support.loops import LoopProject, run_ralph, whole

STARTED = told.RunStarted(run="20260115-093000-1a2b", workspace="/w", layout="feature", plan="p", pid=1, agent="claude")
WELL = Ended(How.EXITED, code=0, seconds=2)


def spans_of(events: Iterable[AnyEvent], *, times: Sequence[float] | None = None) -> list[Span]:
    """All of them, closed. One second a record, if no times are given."""
    tracer, spans = Tracer(), []
    for number, event in enumerate(events):
        spans += tracer.add(Record(number + 1, times[number] if times else 100.0 + number, event))
    return spans + tracer.close()


def named(spans: Iterable[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found


def misnested(spans: Sequence[Span]) -> list[str]:
    by_id = {span.id: span for span in spans}
    problems = [] if len(by_id) == len(spans) else ["an ID twice"]
    problems += [] if sum(not span.parent for span in spans) == 1 else ["not one root"]
    for span in spans:
        parent = by_id.get(span.parent)
        if span.start > span.end or any(not span.start <= event.time <= span.end for event in span.events):
            problems.append(f"{span.name} is not in order")
        if span.parent and (parent is None or not parent.start <= span.start <= span.end <= parent.end):
            problems.append(f"{span.name} is not within its parent")
    return problems


def started(iteration: int = 1, story: str = "S-1", mode: Mode = Mode.IMPLEMENT) -> told.IterationStarted:
    return told.IterationStarted(iteration=iteration, story=story, title="A story", mode=mode, attempt=1)


def session(iteration: int = 1, outcome: Outcome | None = None, ended: Ended = WELL) -> list[AnyEvent]:
    return [
        told.AgentStarted(iteration=iteration, step="agent", pid=2, start="", agent="claude", prompt=1234),
        told.AgentSaid(iteration, Init(model="claude-sonnet-4-5", session="c-1", version="2.1.0")),
        told.AgentSaid(iteration, ToolUse("Bash", "Bash rm -rf secret-thing", "t-1")),
        told.AgentSaid(iteration, Text("I wrote secret-thing")),
        told.AgentEnded(iteration=iteration, step="agent", ended=ended, outcome=outcome or Outcome(True, True)),
    ]


def ended(
    iteration: int = 1, kind: Kind = Kind.ACCEPTED, story: str = "S-1", state: State | None = State.DONE, why: str = ""
) -> told.IterationEnded:
    return told.IterationEnded(
        iteration=iteration, story=story, mode=Mode.IMPLEMENT, kind=kind, headline=why or kind.value, story_state=state
    )


def checked(iteration: int = 1, *, passed: bool = True, name: str = "tests") -> list[AnyEvent]:
    result = CheckResult(name, "make test", passed, code=0 if passed else 2, seconds=1)
    return [
        told.CheckStarted(iteration=iteration, name=name, when="story"),
        told.CheckEnded(iteration=iteration, tree="t", check_set="s", result=result),
    ]


def taken(iteration: int = 1) -> told.SessionTaken:
    return told.SessionTaken(iteration=iteration, ended=WELL, outcome=Outcome(), request=Request())


def judged(iteration: int = 1, kind: Kind = Kind.ACCEPTED) -> told.Judged:
    evidence = Evidence(mode=Mode.IMPLEMENT, story=None, ended=WELL, outcome=Outcome())
    return told.Judged(iteration, evidence, Verdict(kind, ("check 'tests' failed",), grade="proven"))


DONE = told.RunEnded(Reason.COMPLETE)


def test_a_story_lasts_from_its_first_iteration_to_its_last_with_others_between() -> None:
    others = started(2, "S-2"), ended(2, story="S-2")
    spans = spans_of([STARTED, started(1), ended(1), *others, started(3), ended(3), DONE])
    story = named(spans, "story S-1")
    assert (story.start, story.end) == (101, 106)
    assert [span.attributes["ralph.iteration"] for span in spans if span.parent == story.id] == [1, 3]
    assert named(spans, "ralph run").end == 107
    assert misnested(spans) == []


def test_a_session_has_the_attributes_of_the_conventions_and_no_text() -> None:
    tokens = Tokens(input=10, output=20, cache_read=300, cache_write=4000)
    outcome = Outcome(True, True, model="claude-sonnet-4-5", tokens=tokens, turns=3, tools=1)
    charge = told.Charged(iteration=1, story="S-1", id="x", basis=Basis.REPORTED, usd=0.25, tokens=4330)
    spans = spans_of([STARTED, started(), *session(outcome=outcome), charge, ended(), DONE])
    span = named(spans, "invoke_agent claude")
    assert span.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "claude",
        "gen_ai.agent.version": "2.1.0",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.conversation.id": "c-1",
        "gen_ai.response.model": "claude-sonnet-4-5",
        "gen_ai.usage.input_tokens": 4310,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 300,
        "gen_ai.usage.cache_creation.input_tokens": 4000,
        "process.exit.code": 0,
        "ralph.step": "agent",
        "ralph.prompt.characters": 1234,
        "ralph.turns": 3,
        "ralph.tool_calls": 1,
        "ralph.denied_calls": 0,
        "ralph.ended": "exited",
        "ralph.cost.usd": 0.25,
        "ralph.cost.basis": "reported",
    }
    assert [(event.name, event.attributes) for event in span.events] == [("tool call", {"ralph.tool": "Bash"})]
    assert "secret-thing" not in str(spans)
    assert named(spans, "iteration implement").attributes["ralph.cost.usd"] == 0.25
    assert named(spans, "ralph run").attributes["ralph.cost.usd"] == 0.25


def test_the_loop_names_the_same_span_to_the_client() -> None:
    events = [STARTED, started(), *session(), *session(), ended(), DONE]
    ids = [span.id for span in spans_of(events) if span.name == "invoke_agent claude"]
    context = TraceContext(STARTED.run)
    told_ids = [context.session(1, "agent", number)["TRACEPARENT"].split("-") for number in (1, 2)]
    assert told_ids == [["00", context.trace, span, "01"] for span in ids]


@pytest.mark.parametrize("kind", [Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT, Kind.TRANSPORT, Kind.LIMIT])
def test_what_failed_is_an_error_with_its_reason(kind: Kind) -> None:
    spans = spans_of([STARTED, started(), ended(kind=kind, state=State.TODO, why="no witness"), DONE])
    span = named(spans, "iteration implement")
    assert (span.status, span.message) == (Status.ERROR, "no witness")
    assert span.attributes["error.type"] == kind.value


def test_a_crashed_session_is_an_error_without_what_it_printed() -> None:
    broken = Ended(How.EXITED, code=1, seconds=1, detail="Traceback: def secret_thing()")
    spans = spans_of([STARTED, started(), *session(ended=broken, outcome=Outcome()), ended(), DONE])
    span = named(spans, "invoke_agent claude")
    assert (span.status, span.message) == (Status.ERROR, "exited, exit code 1")
    limited = Outcome(trouble=Trouble.LIMIT, detail="secret_thing")
    spans += spans_of([STARTED, started(), *session(outcome=limited), ended(), DONE])
    assert "secret_thing" not in str(spans)


def test_checks_are_in_the_proof_and_the_verdict_is_an_event() -> None:
    events = [
        STARTED,
        started(),
        *session(),
        taken(),
        *checked(passed=False),
        judged(kind=Kind.REJECTED),
        ended(),
        DONE,
    ]
    spans = spans_of(events)
    proof, check = named(spans, "proof"), named(spans, "check tests")
    assert check.parent == proof.id
    assert (check.status, check.message) == (Status.ERROR, "exit code 2")
    assert (proof.status, proof.message) == (Status.ERROR, "check 'tests' failed")
    (event,) = named(spans, "iteration implement").events
    assert event.name == "verdict"
    assert event.attributes["ralph.kind"] == "rejected"


def test_the_merge_queue_proves_within_the_merge_of_each_iteration() -> None:
    events = [
        *(STARTED, started(1), started(2, "S-2")),
        *(told.Queued(iteration=number, story=f"S-{number}", commit="c", base="b") for number in (1, 2)),
        told.QueueProving(iterations=(1, 2), onto="b", merged="m"),
        *checked(2),
        told.QueueProved(iterations=(1, 2), merged="m", passed=False, why="tests failed"),
        *(ended(1), ended(2, Kind.RETURNED, "S-2", State.TODO), DONE),
    ]
    spans = spans_of(events)
    assert misnested(spans) == []
    proofs = [span for span in spans if span.name == "merge proof"]
    merges = [span for span in spans if span.name == "merge"]
    assert {span.parent for span in proofs} == {span.id for span in merges}
    assert {(span.status, span.message) for span in proofs} == {(Status.ERROR, "tests failed")}
    assert named(spans, "check tests").parent in {span.id for span in proofs}


def test_waits_and_pauses_are_spans_of_the_run() -> None:
    spans = spans_of(
        [STARTED, told.WaitStarted(200, "usage limit"), told.WaitEnded(), told.Paused(), told.Resumed(1), DONE]
    )
    assert named(spans, "wait").attributes["ralph.why"] == "usage limit"
    assert [span.parent for span in spans if span.parent] == [named(spans, "ralph run").id] * 2


def test_a_killed_run_is_closed_at_its_last_record() -> None:
    spans = spans_of([STARTED, started(1), ended(1), started(2, "S-2"), *session(2)[:2]])
    assert misnested(spans) == []
    for name in ("ralph run", "story S-2", "invoke_agent claude"):
        assert (named(spans, name).status, named(spans, name).message) == (Status.ERROR, KILLED)
        assert named(spans, name).end == 105
    assert named(spans, "story S-1").status is Status.OK


def test_the_callers_trace_is_joined_and_a_wrong_one_is_not() -> None:
    caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    joined = told.RunStarted(run="r", workspace="", layout="", plan="", pid=1, traceparent=caller)
    (root,) = spans_of([joined, DONE])
    assert (root.trace, root.parent) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    for wrong in ("00-0-1-01", caller.replace("00-", "ff-", 1), "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "x" * 55):
        context = TraceContext("r", wrong)
        assert (context.trace, context.caller) == (TraceContext("r").trace, "")


NUMBERS = st.integers(0, 3)
STORIES = st.sampled_from(["", "S-1", "S-2"])
KINDS = st.sampled_from(list(Kind))
RESULTS = st.builds(CheckResult, st.sampled_from(["a", "b"]), st.just("x"), st.booleans(), seconds=st.floats(-1, 50))
ENDS = st.builds(Ended, st.sampled_from(list(How)), code=st.none() | st.integers(0, 2), seconds=st.floats(-1, 50))
OUTCOMES = st.builds(Outcome, st.booleans(), st.booleans(), trouble=st.none() | st.sampled_from(list(Trouble)))
SAID = st.sampled_from([Init("m"), Text("x"), ToolUse("Bash"), Limit(True), Retry(1)])
NAMES = st.sampled_from(["a", "b"])
EVENTS: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(started, NUMBERS, STORIES, st.sampled_from(list(Mode))),
    st.builds(ended, NUMBERS, KINDS, STORIES, st.none() | st.sampled_from(list(State))),
    st.builds(told.AgentStarted, iteration=NUMBERS, step=NAMES, pid=st.just(1), start=st.just("")),
    st.builds(told.AgentSaid, NUMBERS, SAID),
    st.builds(told.AgentEnded, iteration=NUMBERS, step=NAMES, ended=ENDS, outcome=OUTCOMES),
    st.builds(
        told.Charged,
        iteration=NUMBERS,
        story=STORIES,
        id=NAMES,
        basis=st.sampled_from(list(Basis)),
        usd=st.none() | st.floats(0, 9),
    ),
    st.builds(told.HookAnswered, iteration=NUMBERS, hook=NAMES, answer=st.sampled_from(["", "allow", "deny"])),
    st.builds(
        told.StepEnded,
        iteration=NUMBERS,
        step=NAMES,
        kind=st.sampled_from(["agent", "command"]),
        ok=st.booleans(),
        seconds=st.floats(-1, 50),
    ),
    st.builds(taken, NUMBERS),
    st.builds(judged, NUMBERS, KINDS),
    st.builds(
        told.CheckStarted,
        iteration=NUMBERS,
        name=NAMES,
        when=st.sampled_from(["baseline", "checkout", "story", "proof", "final"]),
    ),
    st.builds(told.CheckEnded, iteration=NUMBERS, tree=NAMES, check_set=NAMES, result=RESULTS),
    st.builds(told.Baseline, tree=NAMES, check_set=NAMES, results=st.lists(RESULTS, max_size=2).map(tuple)),
    st.builds(told.Proved, tree=NAMES, passed=st.booleans(), results=st.lists(RESULTS, max_size=2).map(tuple)),
    st.builds(told.Queued, iteration=NUMBERS, story=STORIES, commit=NAMES, base=NAMES),
    st.builds(
        told.QueueProving, iterations=st.lists(NUMBERS, max_size=3, unique=True).map(tuple), onto=NAMES, merged=NAMES
    ),
    st.builds(
        told.QueueProved,
        iterations=st.lists(NUMBERS, max_size=3, unique=True).map(tuple),
        merged=NAMES,
        passed=st.booleans(),
    ),
    st.builds(told.Landing, iteration=NUMBERS),
    st.builds(told.WaitStarted, st.just(1.0), NAMES),
    st.sampled_from([told.WaitEnded(), told.Paused(), told.Resumed(1), told.Asked(Verb.PAUSE)]),
    st.builds(told.StorySetAside, STORIES, NAMES, NAMES),
    st.builds(told.WorkerStarted, worker=NUMBERS),
    st.builds(told.Committed, iteration=NUMBERS, commit=NAMES),
    st.builds(told.RunEnded, st.sampled_from(list(Reason))),
)


@given(events=st.lists(EVENTS, max_size=60), steps=st.lists(st.floats(-2, 30), min_size=61, max_size=61))
def test_any_records_in_any_order_close_to_a_well_nested_tree(events: list[AnyEvent], steps: list[float]) -> None:
    """Also if the clock goes back."""
    everything, times = [STARTED, *events], list(accumulate(steps, initial=1000.0))
    spans = spans_of(everything, times=times)
    assert misnested(spans) == []
    assert spans == spans_of(everything, times=times)


@given(events=st.lists(EVENTS, max_size=40))
def test_spans_that_have_ended_are_the_same_however_the_run_goes_on(events: list[AnyEvent]) -> None:
    """So another process can send the rest of a trace."""
    tracer, spans = Tracer(), []
    for number, event in enumerate([STARTED, *events]):
        spans += tracer.add(Record(number + 1, 100.0 + number, event))
        assert spans_of([STARTED, *events])[: len(spans)] == spans


def test_every_prefix_of_a_real_journal_closes_to_a_well_nested_tree(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    run_ralph(project)
    records = list(read(project.journals()[0]))
    assert len(records) > 50
    for end in range(1, len(records) + 1):
        tracer, spans = Tracer(), []
        for record in records[:end]:
            spans += tracer.add(record)
        assert misnested(spans + tracer.close()) == [], end
