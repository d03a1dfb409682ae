"""Every action of the scripted agent, played by the real process in a real repository and read back."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ralph.agents import scripted
from ralph.agents.acts import ACTIONS
from ralph.core.agent import (
    AgentEvent,
    Init,
    Limit,
    Outcome,
    Result,
    Retry,
    Text,
    Tokens,
    ToolResult,
    ToolUse,
    Trouble,
    Usage,
    add,
)
from ralph.core.errors import BadData, ConfigError, SetupError
from ralph.core.plan import Mode
from ralph.core.ports import Session
from support import stunts
from support.sessions import session_of

PROMISE = "<promise>COMPLETE</promise>"
CLAIM = {"claim": "done"}


class Played(NamedTuple):
    code: int
    events: list[AgentEvent]
    outcome: Outcome
    out: bytes
    err: str

    @property
    def tools(self) -> list[str]:
        return [event.summary for event in self.events if isinstance(event, ToolUse)]

    @property
    def ok(self) -> bool:
        """Each tool call went well."""
        return all(event.ok for event in self.events if isinstance(event, ToolResult))


class Theatre:
    """A workspace, and the agent in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.script = folder / "script.yaml"
        self.request = folder / "request.json"
        self.plan = self.root / ".ralph" / "demo" / "tasks.json"

    def session(self, *actions: Any, **fields: Any) -> Session:
        mode = fields.get("mode", Mode.IMPLEMENT)
        self.script.write_text(json.dumps({"acts": stunts.__file__, "stories": {"*": [{mode.value: list(actions)}]}}))
        own = {"script": self.script, "request": self.request, "plan": self.plan, "story": "US-001"}
        return session_of(**{"prompt": "Do it.", "cwd": self.root, **own, **fields})

    def start(self, *actions: Any, **fields: Any) -> subprocess.Popen[bytes]:
        session = self.session(*actions, **fields)
        launch = scripted.launch(session, scripted.find(session, ""))
        return subprocess.Popen(
            launch.argv,
            cwd=session.cwd,
            env={**os.environ, **launch.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def perform(self, *actions: Any, **fields: Any) -> Played:
        session = self.session(*actions, **fields)
        launch = scripted.launch(session, scripted.find(session, ""))
        done = subprocess.run(
            launch.argv,
            cwd=session.cwd,
            env={**os.environ, **launch.env},
            input=launch.stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return heard(done.returncode, done.stdout, done.stderr)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()


def heard(code: int, out: bytes, err: bytes = b"") -> Played:
    read = scripted.reader()
    outcome = Outcome()
    events = [event for line in out.splitlines() for event in read(line)]
    for event in events:
        outcome = add(outcome, event, PROMISE)
    return Played(code, events, outcome, out, err.decode())


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


@pytest.fixture
def repository(theatre: Theatre, git_identity: tuple[str, str]) -> Theatre:
    (theatre.root / "README.md").write_text("A project.\n")
    theatre.git("init", "--quiet", "--initial-branch=main")
    theatre.git("add", "--all")
    theatre.git("commit", "--quiet", "--message", "Start")
    (theatre.root / "README.md").write_text("A better project.\n")
    theatre.git("commit", "--quiet", "--all", "--message", "Go on")
    return theatre


@pytest.fixture
def planned(theatre: Theatre) -> Theatre:
    story = {
        "acceptanceCriteria": ["it works"],
        "priority": 1,
        "passes": False,
        "reviewStatus": None,
        "reviewCount": 0,
        "reviewFeedback": "",
    }
    stories = [{"id": f"US-00{n}", "title": f"Story {n}", **story} for n in (1, 2)]
    plan = {"project": "demo", "branchName": "", "description": "A demo.", "userStories": stories}
    theatre.plan.parent.mkdir(parents=True)
    theatre.plan.write_text(json.dumps(plan, indent=2))
    return theatre


def story_of(theatre: Theatre, number: int = 1) -> dict[str, Any]:
    story: dict[str, Any] = json.loads(theatre.plan.read_bytes())["userStories"][number - 1]
    return story


def test_a_play_without_a_part_ends_well_and_changes_nothing(theatre: Theatre) -> None:
    played = theatre.perform()
    assert (played.code, played.outcome.ok, played.outcome.promised) == (0, True, False)
    kinds = [type(event) for event in played.events if not isinstance(event, Usage)]
    assert kinds == [Init, Text, Result]
    assert list(theatre.root.iterdir()) == []


def test_what_is_played_depends_on_story_mode_and_attempt(theatre: Theatre) -> None:
    stories = {"US-001": [{"implement": [{"say": "one"}]}, {"implement": [{"say": "two"}], "fix": [{"say": "mend"}]}]}
    theatre.session()
    theatre.script.write_text(json.dumps({"model": "m9", "stories": stories}))

    def said(story: str, mode: str, attempt: str) -> str:
        env = {**os.environ, "RALPH_STORY": story, "RALPH_MODE": mode, "RALPH_ATTEMPT": attempt}
        argv = [sys.executable, "-I", "-m", "ralph.agents.play", str(theatre.script)]
        done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        outcome = heard(0, done.stdout).outcome
        assert outcome.model == "m9"
        return outcome.text

    assert said("US-001", "implement", "1") == "one"
    assert said("US-001", "implement", "5") == "two"
    assert said("US-001", "fix", "1") == "mend"
    assert said("US-002", "implement", "1") == "The script is played to its end."


def test_files_are_edited_as_written(theatre: Theatre) -> None:
    played = theatre.perform(
        {"write": {"path": "src/a.py", "text": "a = 1\n"}},
        {"append": {"path": "src/a.py", "text": "b = 2 # ü\n"}},
        {"replace": {"path": "src/a.py", "old": "1", "new": "11"}},
        {"write": {"path": "gone.txt"}},
        {"delete": "gone.txt"},
        {"write": {"path": "old/x/y.txt"}},
        {"delete": "old"},
        {"write": {"path": "go.sh", "text": "#!/bin/sh\n", "executable": True}},
        {"write": {"path": "../outside.txt", "text": "out\n"}},
    )
    assert (played.code, played.err, played.ok) == (0, "", True)
    assert (theatre.root / "src" / "a.py").read_text() == "a = 11\nb = 2 # ü\n"
    assert sorted(path.name for path in theatre.root.iterdir()) == ["go.sh", "src"]
    assert os.access(theatre.root / "go.sh", os.X_OK)
    assert (theatre.root.parent / "outside.txt").read_text() == "out\n"
    assert played.tools[:5] == [
        "Write src/a.py",
        "Edit src/a.py",
        "Edit src/a.py",
        "Write gone.txt",
        "Bash rm -rf gone.txt",
    ]


def test_a_command_runs_in_a_shell_and_its_failure_is_shown(theatre: Theatre) -> None:
    played = theatre.perform({"run": "echo $RALPH_STORY > story.txt; cat"}, {"run": "exit 3"}, {"run": "no-such-thing"})
    assert (theatre.root / "story.txt").read_text() == "US-001\n"
    assert [event.ok for event in played.events if isinstance(event, ToolResult)] == [True, False, False]
    assert (played.code, played.outcome.ok) == (0, True)


def test_a_command_is_not_waited_for_in_the_background(theatre: Theatre) -> None:
    gate = theatre.root / "gate"
    os.mkfifo(gate)
    played = theatre.perform({"run": "cat gate > late.txt &"})
    assert played.outcome.ok
    gate.write_text("late\n")
    _until(lambda: (theatre.root / "late.txt").read_text() == "late\n")


def test_a_command_starts_with_the_signals_of_a_shell(theatre: Theatre) -> None:
    theatre.perform({"run": "(yes; echo $? > code.txt) | head -n 1"})
    assert (theatre.root / "code.txt").read_text() == f"{128 + signal.SIGPIPE}\n"


def test_words_thoughts_and_tools_are_shown(theatre: Theatre) -> None:
    played = theatre.perform(
        {"say": "Let me see."},
        {"think": PROMISE},
        {"use": {"tool": "Bash", "input": {"command": "pytest -q"}, "ok": False}},
        {"say": "I see — ünïcode."},
    )
    kinds = [type(event) for event in played.events if not isinstance(event, Usage)]
    assert kinds == [Init, Text, ToolUse, ToolResult, Text, Result]
    assert played.tools == ["Bash pytest -q"]
    assert (played.outcome.text, played.outcome.promised) == ("I see — ünïcode.", False)


def test_a_tool_that_is_denied_is_a_matter_of_permission(theatre: Theatre) -> None:
    played = theatre.perform({"use": {"tool": "Edit", "denied": True}})
    assert played.outcome.trouble is Trouble.PERMISSION


def test_costs_are_reported_and_add_up_over_results(theatre: Theatre) -> None:
    cost = {"cost": {"usd": 0.25, "input": 100, "output": 20, "cache_read": 7, "cache_write": 3}}
    played = theatre.perform(cost, {"result": "halfway"}, cost, {"say": "done"})
    results = [event for event in played.events if isinstance(event, Result)]
    assert [(event.text, event.cost_usd, event.tokens) for event in results] == [
        ("halfway", 0.25, Tokens(100, 20, 7, 3)),
        ("done", 0.25, Tokens(100, 20, 7, 3)),
    ]
    assert (played.outcome.cost_usd, played.outcome.tokens) == (0.5, Tokens(200, 40, 14, 6))


def test_the_prompt_can_be_kept(theatre: Theatre) -> None:
    prompt = "Straße\n" * 50_000
    theatre.perform({"prompt": "prompt.txt"}, prompt=prompt)
    assert (theatre.root / "prompt.txt").read_text() == prompt


@pytest.mark.parametrize(
    ("actions", "request_file"),
    [
        (["claim"], CLAIM),
        ([{"claim": "already-satisfied"}], {"claim": "already-satisfied"}),
        ([{"ask": "Which colour?"}], {"ask": "Which colour?"}),
        ([{"ask": "Really?"}, "claim"], {"ask": "Really?", "claim": "done"}),
        ([{"learn": "Cents only"}, "claim"], {"learn": ["Cents only"], "claim": "done"}),
        ([{"learn": ["One", "Two"]}], {"learn": ["One", "Two"]}),
    ],
)
def test_a_claim_and_a_question_are_in_the_request_file(
    theatre: Theatre, actions: list[Any], request_file: dict[str, Any]
) -> None:
    assert theatre.perform(*actions).outcome.ok
    assert json.loads(theatre.request.read_bytes()) == request_file


def test_a_promise_is_in_the_last_words(theatre: Theatre) -> None:
    played = theatre.perform({"say": "Working."}, "promise", {"say": "Still working."})
    assert played.outcome.promised
    assert played.outcome.text.endswith(PROMISE)
    assert "DONE!" in theatre.perform({"promise": "DONE!"}).outcome.text


def test_a_lie_claims_by_all_means_and_changes_nothing(theatre: Theatre) -> None:
    played = theatre.perform("lie")
    assert (played.code, played.outcome.ok, played.outcome.promised) == (0, True, True)
    assert json.loads(theatre.request.read_bytes()) == CLAIM
    assert list(theatre.root.iterdir()) == []


def test_sentinels_are_written(theatre: Theatre) -> None:
    theatre.perform({"waiting": "Which key?"}, "complete", {"complete": {"path": "ralph/COMPLETE", "text": "all"}})
    assert (theatre.root / ".ralph" / "WAITING").read_text() == "Which key?"
    assert (theatre.root / ".ralph" / "COMPLETE").read_text() == ""
    assert (theatre.root / "ralph" / "COMPLETE").read_text() == "all"


def test_a_mark_by_command_is_a_claim_as_an_agent_makes_it(planned: Theatre) -> None:
    played = planned.perform({"mark": {"note": "did it"}})
    assert played.ok
    assert played.tools == ["Bash ralph task done US-001 --feature demo --note did it"]
    assert (story_of(planned)["reviewStatus"], story_of(planned)["passes"]) == ("needs_review", False)
    assert story_of(planned, 2)["reviewStatus"] is None


def test_a_mark_that_is_refused_is_shown_and_the_play_goes_on(planned: Theatre) -> None:
    played = planned.perform({"mark": "US-999"}, {"say": "Anyway."})
    assert (played.ok, played.code, played.outcome.text) == (False, 0, "Anyway.")


def test_a_mark_by_hand_takes_what_it_wants(planned: Theatre) -> None:
    planned.perform({"mark": {"story": "US-002", "by": "hand"}})
    assert (story_of(planned, 2)["passes"], story_of(planned, 2)["reviewStatus"]) == (True, "approved")
    assert story_of(planned)["passes"] is False


@pytest.mark.parametrize(
    ("name", "before", "after", "story"),
    [
        ("plan.md", "- [ ] US-001: One\n- [ ] US-0011: Two\n", "- [x] US-001: One\n- [ ] US-0011: Two\n", "US-001"),
        ("spec.md", "* [ ] **1.1** One\n* [ ] **1.10** Ten\n", "* [x] **1.1** One\n* [ ] **1.10** Ten\n", "1.1"),
        ("prd.json", '{"tasks": [{"id": "a", "status": "todo"}]}', '"status": "done"', "a"),
        ("prd.json", '{"userStories": [{"id": "a", "passes": false}]}', '"passes": true', "a"),
    ],
)
def test_a_mark_by_hand_knows_the_other_layouts(
    theatre: Theatre, name: str, before: str, after: str, story: str
) -> None:
    plan = theatre.root / name
    plan.write_text(before)
    assert theatre.perform({"mark": {"by": "hand"}}, plan=plan, story=story).code == 0
    assert after in plan.read_text()


def test_a_review_comes_to_a_verdict_in_the_plan(planned: Theatre) -> None:
    verdict = {"what": "changes_requested", "feedback": "Handle the empty list."}
    planned.perform({"verdict": verdict}, mode=Mode.REVIEW)
    story = story_of(planned)
    assert (story["reviewStatus"], story["reviewCount"], story["passes"]) == ("changes_requested", 1, False)
    assert story["reviewFeedback"] == "Handle the empty list."
    planned.perform({"verdict": "approved"}, mode=Mode.REVIEW)
    story = story_of(planned)
    assert (story["reviewStatus"], story["reviewCount"], story["passes"]) == ("approved", 2, True)


def test_findings_and_what_became_of_them_go_into_the_request_file(theatre: Theatre) -> None:
    finding = {"text": "never closed", "place": "a.py:1"}
    theatre.perform({"verdict": {"what": "changes_requested", "findings": [finding]}}, mode=Mode.REVIEW)
    review = json.loads(theatre.request.read_bytes())["review"]
    assert (review["verdict"], review["findings"]) == ("changes_requested", [finding])
    replies = [{"id": "F1", "fate": "fixed"}]
    theatre.perform({"fixes": {"replies": replies}}, mode=Mode.FIX)
    assert json.loads(theatre.request.read_bytes())["fixes"] == replies


def test_a_planners_answer_is_its_last_words(theatre: Theatre) -> None:
    played = theatre.perform({"answer": {"requirements": "Say hello.", "stories": [{"title": "Greet"}]}})
    assert json.loads(played.outcome.text) == {"requirements": "Say hello.", "stories": [{"title": "Greet"}]}


def test_the_agent_commits_as_the_user_of_the_repository(repository: Theatre) -> None:
    played = repository.perform({"write": {"path": "new.txt"}}, {"commit": "Add a file"})
    assert repository.git("log", "-1", "--format=%an|%s") == "Ada Tester|Add a file"
    assert repository.git("status", "--porcelain") == ""
    assert played.ok


def test_the_agent_commits_under_its_own_name_where_nobody_is_known(theatre: Theatre) -> None:
    theatre.git("init", "--quiet")
    theatre.perform({"write": {"path": "new.txt"}}, "commit")
    assert theatre.git("log", "-1", "--format=%an") == "Scripted Agent"


def test_only_what_is_staged_is_committed_when_asked(repository: Theatre) -> None:
    repository.perform(
        {"write": {"path": "a.txt"}},
        {"write": {"path": "b.txt"}},
        {"run": "git add a.txt"},
        {"commit": {"message": "One", "all": False}},
    )
    assert repository.git("status", "--porcelain") == "?? b.txt"


def test_history_can_be_rewritten_stashed_and_left(repository: Theatre) -> None:
    start = repository.git("rev-parse", "HEAD")
    repository.perform({"write": {"path": "a.txt"}}, {"amend": "Rewritten"})
    assert repository.git("log", "--format=%s").split("\n") == ["Rewritten", "Start"]
    repository.perform({"write": {"path": "b.txt"}}, {"append": {"path": "README.md", "text": "x"}}, "stash")
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("stash", "list")
    repository.perform("reset")
    assert repository.git("log", "--format=%s") == "Start"
    repository.perform({"reset": {"to": start, "hard": False}})
    assert repository.git("rev-parse", "HEAD") == start
    repository.perform({"reset": start}, {"switch": "elsewhere"})
    assert repository.git("branch", "--show-current") == "elsewhere"
    repository.perform({"switch": {"branch": "main", "create": False}})
    assert repository.git("branch", "--show-current") == "main"


def test_the_repository_can_be_deleted(repository: Theatre) -> None:
    assert repository.perform("delete_git").code == 0
    assert not (repository.root / ".git").exists()


def test_the_repository_can_be_replaced(repository: Theatre) -> None:
    inode = (repository.root / ".git").stat().st_ino
    kept = os.open(repository.root / ".git", os.O_RDONLY)  # so that the inode is not given out again
    repository.perform("replace_git")
    os.close(kept)
    assert (repository.root / ".git").stat().st_ino != inode
    assert repository.git("log", "--format=%s") == "A new history"


def test_the_repository_can_be_made_to_point_elsewhere(repository: Theatre) -> None:
    repository.perform({"replace_git": "/somewhere/else.git"})
    assert (repository.root / ".git").read_text() == "gitdir: /somewhere/else.git\n"


def test_traps_are_laid_in_the_repository(repository: Theatre) -> None:
    repository.perform("git_config", {"git_config": {"key": "core.pager", "value": "cat"}}, "git_hook")
    assert repository.git("config", "--local", "core.fsmonitor") == "touch fsmonitor-ran"
    assert repository.git("config", "--local", "core.pager") == "cat"
    assert os.access(repository.root / ".git" / "hooks" / "pre-commit", os.X_OK)


def test_the_workspace_can_become_a_link(repository: Theatre) -> None:
    played = repository.perform("link_workspace", {"write": {"path": "after.txt"}})
    moved = repository.root.with_name("project.moved")
    assert played.code == 0
    assert repository.root.is_symlink()
    assert repository.root.resolve() == moved.resolve()
    assert (moved / "after.txt").exists()


def test_the_plan_can_be_damaged_in_many_ways(planned: Theatre) -> None:
    whole = planned.plan.read_bytes()

    def damage(**settings: Any) -> Path:
        if not planned.plan.is_symlink() and planned.plan.is_dir():
            planned.plan.rmdir()
        planned.plan.unlink(missing_ok=True)
        planned.plan.write_bytes(whole)
        assert planned.perform({"corrupt": settings}).code == 0
        return planned.plan

    assert damage(how="truncate").read_bytes() == whole[: len(whole) // 2]
    assert damage(how="empty").read_bytes() == b""
    assert damage(how="delete").exists() is False
    assert stat.S_ISFIFO(damage(how="fifo").stat().st_mode)
    assert damage(how="folder").is_dir()
    assert damage(how="symlink", to="/etc/passwd").readlink() == Path("/etc/passwd")
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(damage(how="invalid").read_bytes())
    with pytest.raises(UnicodeDecodeError):
        damage(how="binary").read_text()
    assert stat.S_IMODE(damage(how="unreadable").stat().st_mode) == 0


def test_another_file_can_be_damaged(theatre: Theatre) -> None:
    theatre.perform({"write": {"path": "a.txt", "text": "1234"}}, {"corrupt": {"how": "truncate", "path": "a.txt"}})
    assert (theatre.root / "a.txt").read_text() == "12"


def test_sleep_takes_its_time_with_signs_of_life(theatre: Theatre) -> None:
    begun = time.monotonic()
    played = theatre.perform({"sleep": {"seconds": 0.4, "heartbeat": 0.1}})
    assert time.monotonic() - begun > 0.4
    assert played.out.count(b'"tool_progress"') >= 1
    assert played.tools == ["Bash sleep 0.4"]


def test_a_silent_agent_ends_when_it_is_asked_to(theatre: Theatre) -> None:
    process = theatre.start({"say": "..."}, "silent")
    _wait_for(process, b'"text":"..."')
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM
    assert b'"type":"result"' not in out


def test_a_hanging_agent_does_not(theatre: Theatre) -> None:
    process = theatre.start({"run": "true"}, "hang")
    _wait_for(process, b'"tool_result"')
    time.sleep(0.2)  # to become deaf
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    time.sleep(0.2)
    assert process.poll() is None
    process.kill()
    process.communicate(timeout=20)
    assert theatre.perform({"hang": {"seconds": 0.1}}).outcome.ok, "and one that comes back goes on"


def _wait_for(process: subprocess.Popen[bytes], what: bytes) -> bytes:
    """Read until the agent has said it."""
    assert process.stdout is not None
    seen = b""
    while what not in seen:
        data = os.read(process.stdout.fileno(), 65536)
        assert data, seen
        seen += data
    return seen


@pytest.mark.parametrize(
    ("settings", "code"),
    [(None, 1), (7, 7), ({"code": 0}, 0), ({"signal": "KILL"}, -9), ({"signal": "sigabrt"}, -6)],
)
def test_a_crash_leaves_no_result(theatre: Theatre, settings: Any, code: int) -> None:
    played = theatre.perform({"write": {"path": "a.txt"}}, {"crash": settings}, {"say": "never"})
    assert (played.code, played.outcome.finished, played.outcome.text) == (code, False, "")
    assert (theatre.root / "a.txt").exists()


def test_a_crash_can_say_why(theatre: Theatre) -> None:
    assert theatre.perform({"crash": {"message": "out of memory"}}).err == "out of memory\n"


def test_a_lingering_agent_stays_after_its_result(theatre: Theatre) -> None:
    process = theatre.start("linger", {"say": "bye"})
    seen = _wait_for(process, b'"type":"result"')
    time.sleep(0.2)
    assert process.poll() is None
    assert heard(0, seen).outcome.text == "bye"
    process.terminate()
    process.communicate(timeout=20)


def test_a_daemon_outlives_the_agent_in_a_session_of_its_own(theatre: Theatre) -> None:
    settings = {"seconds": 2, "path": "late.txt", "text": "late", "after": 1.5}
    process = theatre.start({"daemon": settings})
    process.communicate(timeout=20)
    assert (process.returncode, (theatre.root / "late.txt").exists()) == (0, False)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _until((theatre.root / "late.txt").exists)


def test_a_daemon_may_keep_the_output_open_and_be_deaf(theatre: Theatre) -> None:
    process = theatre.start({"daemon": {"seconds": 1.5, "keep_output": True, "ignore_term": True}})
    _wait_for(process, b'"type":"result"')
    process.wait(timeout=20)
    ended = time.monotonic()
    process.communicate(timeout=20)
    assert time.monotonic() - ended > 0.3, "the end of the output comes with the end of the daemon"


def _until(condition: Any) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("kind", "sample"),
    [("lines", b"lazy dog"), ("line", b"x" * 300_000), ("invalid_utf8", b"\xff\xfe"), ("nul", b"\0" * 300_000)],
)
def test_noise_does_not_hide_the_result(theatre: Theatre, kind: str, sample: bytes) -> None:
    played = theatre.perform({"print": {"size": 300_000, "kind": kind}}, "promise")
    assert sample in played.out
    assert len(played.out) > 300_000
    assert played.outcome.promised


def test_one_event_can_be_as_large_as_it_likes(theatre: Theatre) -> None:
    played = theatre.perform({"print": {"size": 2_000_000, "kind": "event"}})
    assert next(len(event.text) for event in played.events if isinstance(event, Text)) == 2_000_000


def test_a_line_left_open_swallows_what_follows(theatre: Theatre) -> None:
    played = theatre.perform({"print": {"text": "garbage", "newline": False}}, {"say": "lost"})
    assert b'garbage{"type":"assistant"' in played.out
    assert [event.text for event in played.events if isinstance(event, Text)] == []


def test_noise_can_go_to_the_other_stream(theatre: Theatre) -> None:
    played = theatre.perform({"print": {"text": "warning: odd", "to": "stderr"}})
    assert played.err == "warning: odd\n"
    assert b"odd" not in played.out


def test_closing_the_output_is_not_the_end(theatre: Theatre) -> None:
    process = theatre.start({"say": "last"}, "close_output", {"sleep": 0.5}, {"write": {"path": "a.txt"}})
    assert process.stdout is not None
    assert b'"last"' in process.stdout.read()
    assert process.poll() is None
    process.communicate(timeout=20)
    assert (process.returncode, (theatre.root / "a.txt").exists()) == (0, True)


def test_nobody_reading_is_no_reason_to_stop(theatre: Theatre) -> None:
    process = theatre.start({"sleep": 0.3}, {"print": {"size": 200_000}}, {"write": {"path": "a.txt"}})
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert (theatre.root / "a.txt").exists()


def test_the_usage_limit_ends_the_session_with_a_time_of_reset(theatre: Theatre) -> None:
    begun = time.time()
    played = theatre.perform({"write": {"path": "half.txt"}}, {"limit": {"seconds": 100}}, {"say": "never"})
    assert (played.code, played.outcome.trouble) == (1, Trouble.LIMIT)
    assert played.outcome.resets_at is not None
    assert 99 < played.outcome.resets_at - begun < 120
    assert "never" not in played.outcome.text
    assert (theatre.root / "half.txt").exists()


def test_news_about_the_limit_change_nothing(theatre: Theatre) -> None:
    played = theatre.perform({"limit": {"status": "allowed_warning", "utilization": 0.9, "kind": "seven_day"}})
    (news,) = [event for event in played.events if isinstance(event, Limit)]
    assert (news.rejected, news.kind, news.utilization) == (False, "seven_day", 0.9)
    assert played.outcome.ok


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (0, Trouble.TRANSPORT),
        (400, Trouble.OTHER),
        (401, Trouble.AUTHENTICATION),
        (403, Trouble.AUTHENTICATION),
        (404, Trouble.MODEL),
        (429, Trouble.TRANSPORT),
        (500, Trouble.TRANSPORT),
        (529, Trouble.TRANSPORT),
    ],
)
def test_an_error_of_the_api_is_read_as_one(theatre: Theatre, status: int, trouble: Trouble) -> None:
    played = theatre.perform({"api_error": {"status": status, "retries": 2}})
    assert (played.code, played.outcome.trouble, played.outcome.ok) == (1, trouble, False)
    assert [event.status for event in played.events if isinstance(event, Retry)] == [status or None] * 2


def test_an_empty_answer_is_empty(theatre: Theatre) -> None:
    played = theatre.perform("empty")
    assert (played.code, played.outcome.trouble) == (0, Trouble.EMPTY)


@pytest.mark.parametrize(
    ("reason", "trouble"),
    [
        ("max_turns", Trouble.OTHER),
        ("max_budget", Trouble.BUDGET),
        ("context", Trouble.CONTEXT),
        ("interrupted", Trouble.OTHER),
    ],
)
def test_the_client_gives_up_for_a_reason(theatre: Theatre, reason: str, trouble: Trouble) -> None:
    played = theatre.perform({"give_up": reason})
    assert (played.code, played.outcome.trouble) == (1, trouble)
    assert played.outcome.detail


def test_the_pace_slows_every_action_down(theatre: Theatre) -> None:
    theatre.session()
    theatre.script.write_text(json.dumps({"pace": 0.15, "stories": {"*": [[{"say": "a"}, {"say": "b"}]]}}))
    begun = time.monotonic()
    argv = [sys.executable, "-I", "-m", "ralph.agents.play", str(theatre.script)]
    subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert time.monotonic() - begun > 0.3


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"replace": {"path": "a.txt", "old": "x", "new": "y"}}, "No such file"),
        ({"delete": "a.txt"}, "No such file"),
        ({"mark": {"story": "US-9", "by": "hand"}}, "story US-9 is not in the plan"),
        ({"crash": {"signal": "NOPE"}}, "unknown signal NOPE"),
        ({"prompt": "no/such/folder"}, "No such file"),
    ],
)
def test_a_script_that_cannot_be_played_says_where(planned: Theatre, action: dict[str, Any], message: str) -> None:
    played = planned.perform({"say": "hello"}, action)
    assert (played.code, played.outcome.finished) == (65, False)
    assert f"{planned.script}:1: {next(iter(action))}: " in played.err
    assert message in played.err
    assert "Traceback" not in played.err


def test_without_a_place_for_requests_a_claim_cannot_be_made(theatre: Theatre) -> None:
    assert "RALPH_REQUEST_FILE is not set" in theatre.perform("claim", request=None).err
    assert "the path of the plan is not known" in theatre.perform({"corrupt": "empty"}, plan=None).err


def test_a_bad_script_is_refused_before_a_process_starts(theatre: Theatre) -> None:
    bad = theatre.session()
    theatre.script.write_text("stories: {A: [[claimm]]}")
    with pytest.raises(ConfigError, match="unknown action 'claimm'"):
        scripted.find(bad, "")
    theatre.script.unlink()
    with pytest.raises(BadData, match="does not exist"):
        scripted.find(Session(prompt="", cwd=theatre.root, script=theatre.script), "")
    with pytest.raises(SetupError, match="has no script"):
        scripted.find(Session(prompt="", cwd=theatre.root), "")


def test_a_relative_script_is_seen_from_the_workspace(theatre: Theatre) -> None:
    session = theatre.session("claim", script=Path("../script.yaml"))
    assert scripted.launch(session, scripted.find(session, "")).argv[-2] == str(theatre.root / "../script.yaml")


@pytest.mark.parametrize("arguments", [[], ["a", "b", "c"], ["/no/such/file"], ["/dev/null"]])
def test_by_hand_mistakes_are_told(arguments: list[str]) -> None:
    argv = [sys.executable, "-I", "-m", "ralph.agents.play", *arguments]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode in (64, 65)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_the_player_imports_little(theatre: Theatre) -> None:
    theatre.session({"write": {"path": "a.txt"}}, "promise")
    code = "import sys; from ralph.agents.play import main; main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    argv = [sys.executable, "-I", "-c", code, str(theatre.script)]
    done = subprocess.run(argv, cwd=theatre.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    heavy = {"subprocess", "asyncio", "rich", "minijinja", "tree_sitter", "tempfile", "shutil", "argparse", "difflib"}
    assert heavy & set(done.stderr.split()) == set()


def test_every_action_is_played_in_this_file() -> None:
    source = Path(__file__).read_text()
    assert [name for name in (*ACTIONS, *stunts.ACTIONS) if f'"{name}"' not in source] == []
