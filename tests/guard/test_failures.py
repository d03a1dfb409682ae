"""A guard that fails has not allowed anything."""

from __future__ import annotations

import pytest

from ralph.guard import evaluator
from ralph.guard.decision import judge_command
from ralph.hooks.call import Call
from ralph.hooks.pre_tool import answer


def test_characters_far_beyond_ascii_are_read_like_others() -> None:
    for number in range(0x20000, 0x110000, 0x9000):
        assert judge_command(f"{{{chr(number)}; rm -rf /", "/w", {}).denied


@pytest.mark.parametrize("error", [ValueError, MemoryError, AttributeError])
def test_an_error_of_the_guard_denies_the_command(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise error

    monkeypatch.setattr(evaluator, "run_script", fail)
    call = Call("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "echo $(date)"}}, None)
    assert (answer(call).kind, answer(call).category) == ("deny", "guard-failed")
