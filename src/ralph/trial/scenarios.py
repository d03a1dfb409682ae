"""The conformance suite: what every agent has to get right, each as a script for the model and what must come of it.

`heard` judges what the adapter's reader understood. It is also applied to recorded streams, where nothing runs.
`seen` judges the run itself, which is only there with a real client.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ralph.core.agent import Outcome, Trouble
from ralph.trial.dialects import INPUT, OUTPUT
from ralph.trial.failures import RESET
from ralph.trial.model import Turn
from ralph.trial.stage import REQUEST, Played, Stage

PROMISE = "<promise>COMPLETE</promise>"
UNICODE = "naïve “quotes” – 日本語 🙂 \u2019"
_LONG = 200_000
_LONG_PROMPT = ".ralph/long.md"
_TAIL = "the very last word of a long prompt"
_CLAIM = '{"claim": "done"}\n'
_FREE = ("transport", "limit")
"""Verdicts that cost no attempt."""

Problems = Iterator[str]


class Scenario(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    turns: Callable[[Stage], list[Turn]]
    stories: int = 1
    config: dict[str, Any] = {}
    prepare: Callable[[Stage], object] = lambda _: None
    arguments: tuple[str, ...] = ()
    meanwhile: Callable[[Stage, subprocess.Popen[bytes]], object] | None = None
    heard: Callable[[Sequence[Outcome]], Problems]
    seen: Callable[[Played], Problems]


def _write(stage: Stage, name: str, text: str = "x\n") -> Turn:
    return {"write": [stage.path(name), text]}


def _story(stage: Stage, number: int = 1) -> list[Turn]:
    return [_write(stage, f"s{number}.txt"), _write(stage, REQUEST, _CLAIM), {"say": "Done."}]


def _three(stage: Stage) -> list[Turn]:
    return [turn for number in (1, 2, 3) for turn in _story(stage, number)]


def _well(outcomes: Sequence[Outcome]) -> Problems:
    for number, outcome in enumerate(outcomes, 1):
        if not outcome.ok or outcome.trouble:
            yield f"session {number} is not understood as a good one: {outcome.trouble or 'no result'} {outcome.detail}"


def _complete(played: Played) -> Problems:
    if played.code != 0 or not all(played.done):
        yield f"the run ended with {played.code}, done: {played.done}, verdicts: {', '.join(played.verdicts)}"
    yield from _clean(played)


def _clean(played: Played) -> Problems:
    if played.code is None:
        yield "the run did not end in time"
    if left := played.leftovers:
        yield f"{len(left)} processes are left"


def _not_done(played: Played) -> Problems:
    if played.code == 0 or any(played.done):
        yield f"a story was called done: exit code {played.code}"
    yield from _clean(played)


def _trouble(*allowed: Trouble) -> Callable[[Sequence[Outcome]], Problems]:
    def judge(outcomes: Sequence[Outcome]) -> Problems:
        found = [outcome.trouble for outcome in outcomes]
        if not found or any(one not in allowed for one in found):
            names = ", ".join(str(one) for one in found) or "no session"
            yield f"expected {' or '.join(allowed)}, the reader understood: {names} ({_said(outcomes)})"

    return judge


def _said(outcomes: Sequence[Outcome]) -> str:
    return "; ".join(outcome.detail or outcome.text[-100:] for outcome in outcomes)


def _ends(*codes: int, verdicts: tuple[str, ...] = ()) -> Callable[[Played], Problems]:
    def judge(played: Played) -> Problems:
        if played.code not in codes:
            yield f"the run ended with {played.code}, not with {' or '.join(map(str, codes))}"
        if verdicts and any(kind not in verdicts for kind in played.verdicts):
            yield f"the verdict is {', '.join(played.verdicts)}, not {' or '.join(verdicts)}"
        yield from _not_done(played)

    return judge


def _failing(name: str) -> Callable[[Stage], list[Turn]]:
    return lambda _: [{"fail": name, "times": 0}]


def _tools(stage: Stage) -> list[Turn]:
    return [
        {"read": stage.path("old.txt")},
        {"edit": [stage.path("old.txt"), "old", "new"]},
        {"run": "printf shell > shell.txt"},
        *_story(stage),
    ]


def _tools_heard(outcomes: Sequence[Outcome]) -> Problems:
    yield from _well(outcomes)
    if sum(outcome.tools for outcome in outcomes) < 5:
        yield f"{sum(outcome.tools for outcome in outcomes)} tool calls were heard of, there were 5"


def _tools_seen(played: Played) -> Problems:
    yield from _complete(played)
    for name, text in {"old.txt": "new\n", "shell.txt": "shell"}.items():
        file = played.stage.root / name
        if not file.is_file() or file.read_text() != text:
            yield f"{name} is not what the agent wrote"


def _silent(outcomes: Sequence[Outcome]) -> Problems:
    if any(outcome.promised or outcome.text.strip() for outcome in outcomes):
        yield "an empty answer was read as a message"


def _no_claim(outcomes: Sequence[Outcome]) -> Problems:
    if any(outcome.promised for outcome in outcomes):
        yield "it was read as a claim"
    yield from _well(outcomes)


def _reset_heard(outcomes: Sequence[Outcome]) -> Problems:
    yield from _trouble(Trouble.LIMIT)(outcomes)
    for outcome in outcomes:
        if outcome.resets_at is None:
            yield f"the time of the reset was not understood: {outcome.detail}"


def _reset_seen(played: Played) -> Problems:
    yield from _ends(2, verdicts=("limit",))(played)
    for outcome in played.outcomes:
        if outcome.resets_at is not None and abs(outcome.resets_at - time.time() - RESET) > 600:
            yield f"the limit ends in {RESET} s, understood: {outcome.resets_at - time.time():.0f} s"


def _interrupt(stage: Stage, process: subprocess.Popen[bytes]) -> None:
    """Once the tool is running."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None and not (stage.folder / "tmp" / "began").exists():
        if any(stage.state.glob("**/began")) or any(stage.root.glob("began")):
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)


def _stopped(played: Played) -> Problems:
    if played.code not in (1, 130, 143):
        yield f"the run ended with {played.code} after SIGTERM"
    yield from _not_done(played)


def _lengthen(stage: Stage) -> None:
    lines = "\n".join(f"Line {number} of a long text that has to arrive." for number in range(_LONG // 45))
    text = f"Work on story {{{{STORY_ID}}}}: {{{{STORY_TITLE}}}}.\n\n{lines}\n\n{_TAIL}\n"
    stage.commit({_LONG_PROMPT: text})


def _long_seen(played: Played) -> Problems:
    yield from _complete(played)
    if _TAIL not in played.told or "Line 4000 of" not in played.told:
        yield "the prompt did not reach the model whole"


def _unicode_heard(outcomes: Sequence[Outcome]) -> Problems:
    yield from _well(outcomes)
    if not any(UNICODE in outcome.text for outcome in outcomes):
        yield f"the message came as {outcomes[-1].text[-60:]!r}" if outcomes else "no session"


def _unicode_seen(played: Played) -> Problems:
    yield from _complete(played)
    file = played.stage.root / "s1.txt"
    if not file.is_file() or file.read_text(encoding="utf-8").strip() != UNICODE:
        yield "the file does not have the text that the model wrote"


def _usage_heard(outcomes: Sequence[Outcome]) -> Problems:
    yield from _well(outcomes)
    used = [outcome.used for outcome in outcomes]
    if not sum(tokens.total for tokens in used):
        yield "no usage was heard of"


def _usage_seen(played: Played) -> Problems:
    yield from _complete(played)
    used = [outcome.used for outcome in played.outcomes]
    read, wrote = sum(t.input + t.cache_read + t.cache_write for t in used), sum(t.output for t in used)
    main = sum(one["is_main"] for one in played.asked)
    for number, least, most, what in (
        (read, main * INPUT, played.answers * INPUT, "read"),
        (wrote, main * OUTPUT, played.answers * OUTPUT, "written"),
    ):
        if not least <= number <= most:
            yield f"{number} tokens {what} were understood, there were {least} to {most}"


def _reviewed(stage: Stage) -> list[Turn]:
    verdict = '{"review": {"verdict": "approved"}}\n'
    return [*_story(stage), _write(stage, REQUEST, verdict), {"say": "Approved."}, {"say": "Approved.", "times": 0}]


def _reviewed_seen(played: Played) -> Problems:
    yield from _complete(played)
    modes = [event["mode"] for event in played.of("IterationEnded")]
    if modes != ["implement", "review"]:
        yield f"the iterations were {', '.join(modes)}"


def _asks(stage: Stage) -> list[Turn]:
    question = '{"ask": "Which colour?"}\n'
    return [_write(stage, REQUEST, question), {"say": "I asked."}, {"say": "I asked.", "times": 0}]


def _asks_seen(played: Played) -> Problems:
    if played.code != 3 or "Which colour?" not in played.out:
        yield f"the run ended with {played.code}, and the question was {'' if 'colour' in played.out else 'not '}shown"
    yield from _clean(played)


def _late(stage: Stage) -> list[Turn]:
    return [*_story(stage)[:2], {"say": "Done.", "wait": 80}]


def _late_seen(played: Played) -> Problems:
    if not all(played.done):
        yield f"finished work was not kept: {', '.join(played.verdicts)}, exit code {played.code}"
    yield from _clean(played)


def _pushes(stage: Stage) -> list[Turn]:
    return [{"run": "git push origin main"}, *_story(stage)]


def _pushes_seen(played: Played) -> Problems:
    yield from _complete(played)
    denied = [event for event in played.of("HookAnswered") if event["answer"] == "deny"]
    if not denied:
        yield "the guard did not deny git push"
    elif not any(word in played.told for word in ("publish", "push to", "pushes", "Denied", "denied")):
        yield "the model was not told why"


SCENARIOS = (
    Scenario(name="stories", title="three stories are done", stories=3, turns=_three, heard=_well, seen=_complete),
    Scenario(name="tools", title="edit, shell and read", turns=_tools, heard=_tools_heard, seen=_tools_seen),
    Scenario(
        name="empty",
        title="an empty answer",
        config={"max_loops_per_task": 1},
        turns=lambda _: [{"nothing": True, "times": 0}],
        heard=_silent,
        seen=_not_done,
    ),
    Scenario(
        name="refusal",
        title="a refusal",
        config={"max_loops_per_task": 1},
        turns=lambda _: [{"say": "I can’t help with that.", "times": 0}],
        heard=_no_claim,
        seen=_not_done,
    ),
    Scenario(
        name="key",
        title="a wrong key (401)",
        turns=_failing("401"),
        heard=_trouble(Trouble.AUTHENTICATION),
        seen=_ends(78),
    ),
    Scenario(
        name="model", title="an unknown model", turns=_failing("404"), heard=_trouble(Trouble.MODEL), seen=_ends(78)
    ),
    Scenario(
        name="busy",
        title="429 without a reset",
        turns=_failing("429"),
        heard=_trouble(Trouble.TRANSPORT, Trouble.LIMIT),
        seen=_ends(1, 2, verdicts=_FREE),
    ),
    Scenario(name="limit", title="429 with a reset", turns=_failing("reset"), heard=_reset_heard, seen=_reset_seen),
    Scenario(
        name="quota",
        title="a used-up quota",
        turns=_failing("quota"),
        heard=_trouble(Trouble.LIMIT, Trouble.BILLING),
        seen=_ends(2, 78),
    ),
    Scenario(
        name="outage",
        title="500s",
        turns=_failing("500"),
        heard=_trouble(Trouble.TRANSPORT),
        seen=_ends(1, verdicts=_FREE),
    ),
    Scenario(
        name="cut",
        title="a stream that is cut",
        config={"max_loops_per_task": 1},
        turns=lambda _: [{"say": f"Done.\n\n{PROMISE}\n", "cut": True, "times": 0}],
        heard=lambda outcomes: (f"it was read as a claim: {o.text}" for o in outcomes if o.promised and o.ok),
        seen=_not_done,
    ),
    Scenario(
        name="signal",
        title="SIGTERM while a tool runs",
        turns=lambda stage: [{"run": "touch began; sleep 300"}, *_story(stage)],
        meanwhile=_interrupt,
        heard=lambda _: iter(()),
        seen=_stopped,
    ),
    Scenario(
        name="leftovers",
        title="nothing is left behind",
        turns=lambda stage: [
            {"run": "(setsid sleep 300 >/dev/null 2>&1 &) ; sleep 301 >/dev/null 2>&1 &"},
            *_story(stage),
        ],
        heard=_well,
        seen=_complete,
    ),
    Scenario(
        name="long",
        title="a prompt of 200 KB",
        prepare=_lengthen,
        config={"prompt": _LONG_PROMPT},
        turns=_story,
        heard=_well,
        seen=_long_seen,
    ),
    Scenario(
        name="unicode",
        title="Unicode in both directions",
        turns=lambda stage: [
            _write(stage, "s1.txt", f"{UNICODE}\n"),
            _write(stage, REQUEST, _CLAIM),
            {"say": f"Done: {UNICODE}"},
        ],
        heard=_unicode_heard,
        seen=_unicode_seen,
    ),
    Scenario(name="usage", title="usage adds up", turns=_story, heard=_usage_heard, seen=_usage_seen),
    Scenario(
        name="review",
        title="a review with a verdict",
        config={"review": {"enabled": True}},
        turns=_reviewed,
        heard=_well,
        seen=_reviewed_seen,
    ),
    Scenario(name="question", title="a question to a person", turns=_asks, heard=_well, seen=_asks_seen),
    Scenario(
        name="quoted",
        title="a promise in a code block",
        config={"max_loops_per_task": 1},
        turns=lambda _: [{"say": f"I would say:\n\n```\n{PROMISE}\n```\n\nbut it is not true.", "times": 0}],
        heard=_no_claim,
        seen=_not_done,
    ),
    Scenario(
        name="late",
        title="time runs out on finished work",
        config={"timeout": "40s", "max_loops_per_task": 1},
        turns=_late,
        heard=lambda _: iter(()),
        seen=_late_seen,
    ),
    Scenario(
        name="guard",
        title="the guard denies git push",
        arguments=("--no-sandbox",),
        turns=_pushes,
        heard=_well,
        seen=_pushes_seen,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
