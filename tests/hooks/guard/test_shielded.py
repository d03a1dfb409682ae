"""A judge that crashes has not allowed anything."""

from __future__ import annotations

import os
import signal

import pytest

from ralph.hooks.call import Call
from ralph.hooks.guard import shielded
from ralph.hooks.guard.decide import Decision, judge_command
from ralph.hooks.guard.shielded import JudgeDied, judge_shielded
from ralph.hooks.pre_tool import answer


def test_characters_far_beyond_ascii_do_not_crash_the_grammar() -> None:
    for number in range(0x20000, 0x110000, 0x9000):  # about one in three of these ended the process
        assert judge_command(f"{{{chr(number)}; rm -rf /", "/w", {}).denied


@pytest.mark.parametrize("command", ["rm -rf /", "ls && echo 'é'", "git push --force", "echo $(date)"])
def test_the_answer_is_the_same_behind_the_shield(command: str) -> None:
    shown, plain = judge_shielded(command, "/w", {}), judge_command(command, "/w", {})
    assert (shown.denied, shown.category, shown.reason) == (plain.denied, plain.category, plain.reason)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
def test_a_crash_of_the_judge_denies_the_command(how: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(command: str, cwd: str, section: dict[str, object]) -> Decision:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest's own handler would print a traceback
        os.kill(os.getpid(), how)
        raise AssertionError

    monkeypatch.setattr(shielded, "judge_command", crash)
    with pytest.raises(JudgeDied):
        judge_shielded("echo $(date)", "/w", {})
    call = Call("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "echo $(date)"}}, None)
    assert (answer(call).kind, answer(call).category) == ("deny", "guard-failed")
