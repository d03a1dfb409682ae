"""A reviewer that gives no verdict is told the exact form once, in the same iteration, before its review has failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ralph.core.events import AgentEnded, AgentStarted
from ralph.core.verdict import Kind
from support.proven import Proven, shell, write

WORK = [write("src/one.py", "ONE = 1\n"), "claim"]
APPROVE = """printf '{"review": {"verdict": "approved"}}' > "$RALPH_REQUEST_FILE" """
WHEN_ASKED = f'[ -z "$RALPH_VERDICT_ONLY" ] || {APPROVE}'


def reviewed(folder: Path, *review: Any, **config: Any) -> Proven:
    made = Proven(folder, review={"enabled": True}, **config)
    made.run("-n", "2", US_001=[{"implement": WORK, "review": list(review)}])
    return made


def steps(made: Proven) -> list[tuple[int, str]]:
    return [(event.iteration, event.step) for event in made.events() if isinstance(event, AgentStarted)]


def test_the_second_short_session_gives_the_verdict(tmp_path: Path) -> None:
    made = reviewed(tmp_path, {"say": "It all looks fine to me."}, shell(WHEN_ASKED))
    last = made.ended()[-1]
    assert (last.kind, last.headline) == (Kind.ACCEPTED, "approved")
    assert steps(made) == [(1, "agent"), (2, "agent"), (2, "verdict")]


def test_both_sessions_are_paid_for_in_that_iteration(tmp_path: Path) -> None:
    made = reviewed(tmp_path, {"say": "Fine."}, shell(WHEN_ASKED), {"cost": 0.25})
    ended = [event.outcome.cost_usd for event in made.events() if isinstance(event, AgentEnded)]
    assert ended[1:] == [0.25, 0.25]
    assert made.ended()[-1].cost_usd == 0.5


def test_it_is_told_once_and_then_the_review_has_failed(tmp_path: Path) -> None:
    made = reviewed(tmp_path, {"say": "Hm."})
    last = made.ended()[-1]
    assert last.kind is Kind.REJECTED
    assert "the reviewer gave no verdict" in last.headline
    assert steps(made) == [(1, "agent"), (2, "agent"), (2, "verdict")]


def test_a_reviewer_that_asks_a_question_is_not_asked_back(tmp_path: Path) -> None:
    made = reviewed(tmp_path, {"ask": "Which of the two is meant?"})
    assert steps(made) == [(1, "agent"), (2, "agent")]
    assert made.ended()[-1].kind is Kind.BLOCKED


def test_a_command_agent_gets_its_own_words_and_the_form_and_may_answer_on_stdout(tmp_path: Path) -> None:
    """Its answer is a pretty-printed object at the end of what it prints, over several lines."""
    agent = tmp_path / "agent.sh"
    agent.write_text(
        "#!/bin/sh\n"
        f'cat > "{tmp_path}/prompt-$RALPH_MODE-$RALPH_VERDICT_ONLY"\n'
        'case "$RALPH_MODE$RALPH_VERDICT_ONLY" in\n'
        'implement) echo \'ONE = 1\' > src/one.py; echo \'{"claim": "done"}\' > "$RALPH_REQUEST_FILE";;\n'
        "review) echo 'Every criterion is met.'; echo 'I approve.';;\n"
        'review1) printf \'%s\\n\' "So:" "{" \' "review": {\' \'  "verdict": "approved"\' " }" "}";;\n'
        "esac\n"
    )
    agent.chmod(0o755)
    made = Proven(tmp_path, review={"enabled": True}, agent={"name": "command", "command": [str(agent)]})
    done = made.ask("run", "--plain", "--trust")
    assert done.code == 0, done.out
    assert "the reviewer gave no verdict; asking once more" in done.out
    asked = (tmp_path / "prompt-review-1").read_text()
    assert "> Every criterion is met.\n> I approve.\n" in asked
    assert '{"review": {"verdict": "approved"}}' in asked
    assert str(made.root / ".ralph/shop/request.json") in asked
    assert len(asked) < 2500
