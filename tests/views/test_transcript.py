"""What an agent said and did in a session, from its raw log or from the journal alone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from ralph.core.agent import Text, ToolResult, ToolUse
from ralph.views.run_view import RunView
from ralph.views.transcript import LONGEST, EntryKind, Transcript, entries, transcript
from support.hostile_names import SECRET
from support.hostile_runs import tell


def shown(view: RunView, number: int, env: dict[str, str], **more: Any) -> Transcript:
    assert view.first is not None
    attempt = view.attempts.by_iteration[number]
    return transcript(view.first, view.journal, attempt, attempt.sessions[0], env, **more)


def test_a_session_is_read_from_its_log_with_what_its_calls_came_to(view: RunView, env: dict[str, str]) -> None:
    found = shown(view, 1, env)
    assert found.source.endswith(".log")
    calls = [entry for entry in found.entries if entry.kind is EntryKind.CALL]
    assert [(call.tool, call.ok) for call in calls[:2]] == [("Read", True), ("Bash", False)]
    assert calls[1].text == "make needle"
    assert found.entries[-1].kind is EntryKind.RESULT
    assert [entry.number for entry in found.entries] == list(range(found.total))


def test_nothing_in_it_acts_and_no_secret_is_shown(view: RunView, env: dict[str, str]) -> None:
    text = str(shown(view, 1, env))
    assert "the <b>words</b>" in text
    assert "\x1b" not in text
    assert SECRET not in text
    assert "redacted" in text


def test_it_is_searched_and_paged(view: RunView, env: dict[str, str]) -> None:
    whole = shown(view, 1, env)
    assert [entry.text for entry in shown(view, 1, env, search="NEEDLE").entries] == ["make needle"]
    assert shown(view, 1, env, search="nowhere").total == 0
    page = shown(view, 1, env, start=1, count=2)
    assert (page.entries, page.total) == (whole.entries[1:3], whole.total)
    assert shown(view, 1, env, start=10**9).entries == ()
    assert shown(view, 1, env, start=-3, count=1).entries == whole.entries[:1]


def test_a_run_that_was_copied_without_its_logs_has_what_the_journal_has(view: RunView, tmp_path: Path) -> None:
    path = tmp_path / view.journal.parent.name / "events.jsonl"
    path.parent.mkdir()
    shutil.copy(view.journal, path)
    found = shown(RunView(path).catch_up(), 1, {"RALPH_STATE_HOME": str(tmp_path / "no state"), "HOME": str(tmp_path)})
    assert found.source == ""
    assert "make needle" in [entry.text.removeprefix("Bash ") for entry in found.entries]
    others = {entry.text for entry in found.entries} & {"Write src/two.txt"}
    assert not others, "only what was said in this iteration"


def test_a_log_beside_a_copied_journal_is_used(view: RunView, env: dict[str, str], tmp_path: Path) -> None:
    copied = tmp_path / view.journal.parent.name
    shutil.copytree(view.journal.parent, copied)
    found = shown(RunView(copied / "events.jsonl").catch_up(), 1, {"HOME": str(tmp_path)})
    assert found.source.startswith(str(copied))
    assert found.entries == shown(view, 1, env).entries


def test_ten_megabytes_of_escape_sequences_are_cut_before_they_are_cleaned() -> None:
    begun = time.process_time()
    flood = "\x1b[31m\x1b]0;title\x07" * 700_000
    lines = (Text("\x1b[1mx" * 1000, more=True) for _ in range(2000))
    found = entries([Text(flood), *lines, ToolUse("Bash", flood, "1"), ToolResult("1", True, flood)])
    assert time.process_time() - begun < 5
    assert all(entry.is_cut for entry in found)
    assert max(len(each) for entry in found for each in (entry.text, entry.answer)) <= 10 * LONGEST


def test_a_page_of_a_long_journal_decodes_only_its_session(tmp_path: Path) -> None:
    """A damaged line of another session is not even looked at."""
    told = tell(tmp_path / "state")
    told.begin(1)
    told.judge(1)
    told.iterate(2)
    path = told.journal.path
    lines = path.read_bytes().splitlines(keepends=True)
    view = RunView(path).catch_up()
    path.write_bytes(b"".join(b'{"damaged\n' if b'"AgentSaid","iteration":2' in line else line for line in lines))
    found = shown(view, 1, {"HOME": str(tmp_path), "RALPH_STATE_HOME": str(tmp_path / "none")})
    assert [entry.text for entry in found.entries][-1:] == ["Edit cart.py"]
