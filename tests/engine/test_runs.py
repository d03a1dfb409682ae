"""`ralph run` as people use it: every layout, every way a run ends, and what it says and leaves behind.

Signals and two runs at once are in `test_interrupts`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import IterationEnded, Record
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from support import stunts
from support.cli import Completed, ralph_here
from support.hostile import Action, Attempts, shell
from support.processes import wait_for
from support.repositories import IDENTITY
from support.workspaces import story_id, workspace

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")
QUIET: dict[str, Any] = {
    "agent": {"name": "scripted"},
    "checks": [{"name": "sound", "command": "! grep -rqs bad src"}],
    "idle_timeout": 0,
}


class Shop:
    """A project with a plan in some layout: of six stories the first three are done."""

    def __init__(self, folder: Path, layout: str = "feature", config: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.layout = layout
        self.root = folder / "shop"
        self.root.mkdir(parents=True)
        self.ref = workspace(self.root, layout)
        self.stories = [story_id(layout, number) for number in (4, 5, 6)]
        self.write("Makefile", "test:\n\t@! grep -rqs bad src\n")
        self.write("README.md", "# Shop\n")
        own: dict[str, Any] = {"branch": {"auto_create": False}, "archive": {"on_complete": False}}
        review = {"review": {"enabled": False}}
        self.write(".ralph/config.yaml", json.dumps({**QUIET, **own, **review, **(config or {})}))
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada Tester")
        self.git("config", "user.email", "ada@example.test")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *args], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def script(self, stories: Mapping[str, Attempts] | None = None, **more: Any) -> Path:
        path = self.folder / "script.yaml"
        played = {story: [good(story)] for story in self.stories} | dict(stories or {})
        path.write_text(json.dumps({"acts": stunts.__file__, "stories": played, **more}))
        return path

    def start(
        self,
        stories: Mapping[str, Attempts] | None = None,
        *arguments: str,
        command: str = "run",
        env: Mapping[str, str] | None = None,
        **script: Any,
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-W", "error", "-m", "ralph", command),
                *("--plain", "--trust", "--agent-script", str(self.script(stories, **script)), *arguments),
            ],
            cwd=self.root,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, stories: Mapping[str, Attempts] | None = None, *arguments: str, **more: Any) -> Completed:
        return self.finish(self.start(stories, *arguments, **more))

    def finish(self, process: subprocess.Popen[str]) -> Completed:
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in out + err, err
        assert process.returncode != 70, err
        return Completed(process.returncode, out, err)

    @property
    def state(self) -> Path:
        return workspace_state(self.root, os.environ)

    def records(self) -> list[Record]:
        return list(read(journal_path(self.state, list_runs(self.state)[-1])))

    def ended(self) -> list[IterationEnded]:
        return [record.event for record in self.records() if isinstance(record.event, IterationEnded)]

    def status(self) -> dict[str, str]:
        done = ralph_here("status", "--json", cwd=self.root)
        assert done.code == 0, done.err
        return {story["id"]: story["state"] for story in done.json["stories"]}

    def open(self) -> list[str]:
        return [story for story, state in self.status().items() if state != "done"]


def work(story: str) -> Action:
    return {"write": {"path": f"src/{story}.txt", "text": f"good {story}\n"}}


def good(story: str) -> list[Action]:
    return [work(story), "claim"]


BAD: Action = {"write": {"path": "src/bad.txt", "text": "bad\n"}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


# Every layout


LEFT = {
    "plan.md": ("PRD-1/progress.md", "sessions.log", "activity.log"),
    "tasks.json": (),
    "steps": ("run_state.json", "aggregate.json"),
    "feature": ("login/progress.txt",),
    "spec.md": ("COMPLETE",),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_runs_to_its_end(tmp_path: Path, layout: str) -> None:
    shop = Shop(tmp_path, layout)
    first = shop.stories[0]
    done = shop.run({first: [[BAD, "claim"], good(first)]})
    assert done.code == 0, done.out + done.err
    assert "every story is done, and the checks pass on the final tree" in done.out
    assert shop.open() == []
    kinds = [Kind.REJECTED, Kind.ACCEPTED, Kind.ACCEPTED, Kind.ACCEPTED]
    assert [ended.kind for ended in shop.ended()] == kinds
    subjects = shop.git("log", "--format=%s").splitlines()
    assert [subject for subject in subjects if subject.startswith("feat(")] == [
        f"feat({story}): Export report {number} as a file"
        for story, number in reversed(list(zip(shop.stories, (4, 5, 6), strict=True)))
    ]
    trailers = shop.git("log", "-1", "--format=%(trailers)", "--grep", f"feat({first})")
    names = [line.split(":")[0] for line in trailers.splitlines()]
    assert names[:5] == ["Ralph-Run", "Ralph-Iteration", "Ralph-Story", "Ralph-Plan", "Ralph-Verdict"]
    assert names[-1] == "Ralph-Checks"
    for name in LEFT[layout]:
        assert (shop.root / ".ralph" / name).exists(), name
    assert ralph_here("replay", cwd=shop.root).code == 0
    dirty = shop.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert not [line for line in dirty if ".ralph" not in line], dirty
    again = shop.run()
    assert again.code == 0, again.err
    assert not shop.ended()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_dry_run_touches_nothing(tmp_path: Path, layout: str) -> None:
    shop = Shop(tmp_path, layout)
    shop.write("uncommitted.txt", "mine\n")
    script = shop.script()
    before = _checksums(shop.root), _checksums(Path(os.environ["HOME"]))
    done = ralph_here("run", "--dry-run", "--agent-script", script, cwd=shop.root)
    assert done.code == 0, done.err
    assert (_checksums(shop.root), _checksums(Path(os.environ["HOME"]))) == before
    for word in (shop.stories[0], "implement", "ralph.agents.play", "grep -rqs bad src"):
        assert word in done.out


def _checksums(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        at = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(folder))] = f"{at.st_mode} {at.st_mtime_ns} {content}"
    return found


# How a run ends


def test_a_failing_final_check_is_no_success(tmp_path: Path) -> None:
    """Each story passes when it is finished; together they do not."""
    last = story_id("feature", 6)
    checks = [{"name": "few", "command": f"test ! -e src/{last}.txt", "when": ["final"]}]
    shop = Shop(tmp_path, config={"checks": checks})
    done = shop.run()
    assert (done.code, "stopped: final-checks" in done.out) == (1, True)
    assert shop.open() == []


@pytest.mark.parametrize(
    ("play", "code", "reason"),
    [
        ([good("US-004")], 0, "once"),
        ([["lie"]], 1, "iteration-cap"),
        ([[work("US-004")]], 1, "iteration-cap"),
        ([[{"sleep": 30}]], 124, "once-timed-out"),
        ([[{"ask": "Which one?"}]], 1, "iteration-cap"),
    ],
)
def test_once_is_one_iteration(tmp_path: Path, play: Attempts, code: int, reason: str) -> None:
    shop = Shop(tmp_path, config={"timeout": "1s"})
    done = shop.run({"US-004": play}, "--once")
    assert (done.code, f"stopped: {reason}" in done.out) == (code, True), done.out
    assert len(shop.ended()) == 1


def test_the_cap_on_iterations_ends_a_run(shop: Shop) -> None:
    done = shop.run(None, "-n", "2")
    assert (done.code, len(shop.ended())) == (1, 2)
    assert "`ralph run` continues; without max_iterations (-n) the cap follows from the plan" in done.out
    assert shop.open() == ["US-006"]


def test_over_its_attempts_a_story_is_failed_and_the_next_one_is_taken(tmp_path: Path) -> None:
    shop = Shop(tmp_path, config={"max_loops_per_task": 2})
    done = shop.run({"US-005": [[BAD, "claim"]]})
    assert (done.code, "stopped: failed-stories" in done.out) == (5, True)
    assert shop.status() | {"US-006": ""} == {
        **dict.fromkeys(("US-001", "US-002", "US-003", "US-004"), "done"),
        "US-005": "failed",
        "US-006": "",
    }
    shown = ralph_here("task", "show", "US-005", cwd=shop.root)
    assert "no iterations left; last failure: check 'sound' failed" in shown.out, "it had come back"
    assert ralph_here("task", "reopen", "US-005", cwd=shop.root).code == 0
    assert shop.run().code == 0


def test_a_run_without_progress_gives_up(tmp_path: Path) -> None:
    breaker = {"no_progress_threshold": 3, "same_error_threshold": 0, "on_stuck": "stop"}
    shop = Shop(tmp_path, config={"circuit_breaker": breaker, "max_loops_per_task": 0})
    done = shop.run({"US-004": [["lie"]]})
    assert (done.code, len(shop.ended())) == (1, 3)
    assert "stopped: no-progress (3 iterations in a row without progress; last failure: " in done.out
    assert shop.run(None, "--reset-circuit").code == 0


def test_the_same_error_again_and_again_ends_a_run(tmp_path: Path) -> None:
    breaker = {"no_progress_threshold": 0, "same_error_threshold": 2, "on_stuck": "stop"}
    shop = Shop(tmp_path, config={"circuit_breaker": breaker})
    done = shop.run({"US-004": [["lie"], [BAD, "claim"], [BAD, {"write": {"path": "src/more", "text": ""}}, "claim"]]})
    assert (done.code, len(shop.ended()), "stopped: same-error" in done.out) == (1, 3, True)


def test_a_plan_that_becomes_unreadable_between_iterations_stops_the_run(shop: Shop) -> None:
    """A person's edit: nobody puts it back."""
    process = shop.start({"US-004": [[{"limit": 3}]]})
    wait_for(lambda: shop.state.exists() and list(shop.state.rglob("events.jsonl")) and _is_waiting(shop), 20)
    shop.ref.path.write_text("{")
    done = shop.finish(process)
    assert (done.code, "stopped: bad-plan" in done.out) == (65, True)
    assert shop.ref.path.read_text() == "{"
    assert shop.run().code == 65


def _is_waiting(shop: Shop) -> bool:
    return any(type(record.event).__name__ == "WaitStarted" for record in shop.records())


def test_what_keeps_a_run_from_starting_has_its_own_code(shop: Shop, tmp_path: Path) -> None:
    script = str(shop.script())
    untrusted = ralph_here("run", "--plain", "--agent-script", script, cwd=shop.root)
    assert (untrusted.code, "are not trusted yet" in untrusted.err) == (78, True)
    wrong = {
        64: ["--no-such-option"],
        78: ["--agent", "command", "--agent-command", "no-such-program-anywhere"],
    }
    for code, arguments in wrong.items():
        assert ralph_here("run", "--plain", "--trust", "--agent-script", script, *arguments, cwd=shop.root).code == code
    (tmp_path / "broken.yaml").write_text("stories: {US-004: [[no such action]]}")
    broken = ralph_here("run", "--plain", "--trust", "--agent-script", tmp_path / "broken.yaml", cwd=shop.root)
    assert (broken.code, "broken.yaml:1" in broken.err) == (65, True)
    shop.write(".ralph/config.yaml", "max_iterations: many\n")
    assert ralph_here("run", "--plain", cwd=shop.root).code == 65


# What is shown


def test_json_is_one_event_a_line_up_to_the_end_of_the_run(shop: Shop) -> None:
    done = shop.run({"US-004": [[BAD, "claim"], good("US-004")]}, "--json")
    assert done.code == 0
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    types = [record["event"]["type"] for record in records]
    assert (types[0], types[-1]) == ("RunStarted", "RunEnded")
    for kind in ("IterationStarted", "CheckEnded", "Judged", "RescueSaved", "Committed", "IterationEnded", "Proved"):
        assert kind in types
    logged = ralph_here("log", "--json", cwd=shop.root).out.splitlines()
    assert [json.loads(line) for line in logged] == records


def test_quiet_says_only_how_it_ended(shop: Shop) -> None:
    done = shop.run(None, "--quiet")
    assert done.out.strip().startswith("[████████████████████] 6/6")
    assert "▶" not in done.out
    refused = ralph_here("run", "--quiet", "--json", "--trust", "--agent-script", shop.script(), cwd=shop.root)
    assert refused.code == 64


def test_a_run_is_found_again_in_the_views(shop: Shop) -> None:
    shop.run({"US-004": [["lie"], good("US-004")]})
    runs = ralph_here("runs", "--json", cwd=shop.root).json
    assert [(run["reason"], run["done"], run["iterations"]) for run in runs] == [("complete", 6, 4)]
    log = ralph_here("log", runs[0]["run"], cwd=shop.root).out
    assert "no files changed" in log


# Prompts, questions and answers


def test_feedback_of_the_last_attempt_is_in_the_next_prompt(shop: Shop) -> None:
    told = shell("mv prompt.txt ../")
    first: list[Action] = [{"write": {"path": "src/bad.txt", "text": "bad idea\n"}}, "claim"]
    shop.run({"US-004": [first, [{"prompt": "prompt.txt"}, told, *good("US-004")]]}, "--once")
    shop.run({"US-004": [first, [{"prompt": "prompt.txt"}, told, *good("US-004")]]}, "--once")
    prompt = (shop.folder / "prompt.txt").read_text()
    assert "check 'sound' failed with exit code 1" in prompt
    assert "git show refs/ralph/rescue/" in prompt
    assert "make test" in prompt or "grep -rqs bad src" in prompt


def test_a_question_blocks_its_story_and_the_others_go_on(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "plan.md")  # no story of this plan waits for another
    done = shop.run({"US-004": [[BAD, {"ask": "Which currency?"}]]})
    assert done.code == 3
    assert "Which currency?" in done.out
    assert shop.open() == ["US-004"]
    assert shop.status()["US-004"] == "blocked"
    assert shop.run().code == 3  # asking again changes nothing
    assert ralph_here("answer", "US-004", "Euro", cwd=shop.root).code == 0
    told = shell("mv prompt.txt ../")
    assert shop.run({"US-004": [[{"prompt": "prompt.txt"}, told, *good("US-004")]]}).code == 0
    prompt = (shop.folder / "prompt.txt").read_text()
    assert "Which currency?" in prompt
    assert "Euro" in prompt


def test_prompt_prints_what_the_agent_gets(shop: Shop) -> None:
    printed = ralph_here("prompt", cwd=shop.root)
    assert printed.code == 0
    assert "tokens" in printed.err
    told = shell("mv prompt.txt ../")
    shop.run({"US-004": [[{"prompt": "prompt.txt"}, told, *good("US-004")]]}, "--once")
    assert (shop.folder / "prompt.txt").read_text().strip() == printed.out.strip()


# `ralph build`


def test_build_takes_its_number_of_iterations_and_its_prd(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "plan.md")
    done = shop.run(None, "2", "--prd", "1", command="build")
    assert (done.code, len(shop.ended())) == (1, 2)
    assert shop.run(None, command="build", env={"PRD_NUMBER": "1", "MAX_ITERATIONS": "1"}).code == 0
    assert len(shop.ended()) == 1


def test_build_reads_its_variables_and_run_does_not(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "plan.md")
    capped = {"MAX_ITERATIONS": "3", "MAX_ALLOWED_ITERATIONS": "1"}
    assert shop.run(None, command="build", env=capped).code == 1
    assert len(shop.ended()) == 1
    slow: Attempts = [[{"sleep": 30}]]
    done = shop.run({"US-005": slow}, "--once", command="build", env={"TIMEOUT_AGENT": "1"})
    assert done.code == 124
    assert shop.run(None, "--prd", "7", command="build").code == 78
    assert shop.run(None, command="run", env=capped).code == 0
    assert len(shop.ended()) == 2


# Branch, archive, push


def test_the_plan_gets_its_branch_and_is_put_away_when_it_is_done(tmp_path: Path) -> None:
    shop = Shop(tmp_path, config={"branch": {"auto_create": True}, "archive": {"on_complete": True}})
    done = shop.run()
    assert done.code == 0, done.err
    assert shop.git("branch", "--show-current") == "feature/login"
    assert shop.git("log", "--format=%s", "main") == "first"
    assert "archived the plan" in done.err
    assert not (shop.root / ".ralph/login").exists()
    assert [path.name for path in (shop.root / ".ralph/archive").iterdir()]
    assert shop.git("status", "--porcelain") == ""


def test_a_branch_is_not_left_with_uncommitted_work(tmp_path: Path) -> None:
    shop = Shop(tmp_path, config={"branch": {"auto_create": True}})
    shop.write("mine.txt", "mine\n")
    done = shop.run()
    assert (done.code, "mine.txt" in done.err) == (78, True)
    assert shop.git("branch", "--show-current") == "main"


def test_a_plan_stays_where_it_is_when_asked_to(tmp_path: Path) -> None:
    shop = Shop(tmp_path, config={"archive": {"on_complete": True}})
    assert shop.run(None, "--no-archive").code == 0
    assert shop.ref.path.exists()


def test_accepted_stories_are_pushed_by_the_loop(shop: Shop) -> None:
    remote = shop.folder / "remote.git"
    shop.git("init", "-q", "--bare", str(remote))
    shop.git("remote", "add", "origin", str(remote))
    pushed = 'git ls-remote -q origin main | cut -c1-40 > ../seen; git log -1 --format=%H "$(cat ../seen)"'
    done = shop.run({"US-005": [[shell(pushed), BAD, "claim"], good("US-005")]}, "--push", "after-story")
    assert done.code == 0, done.err
    subject = shop.git("log", "-1", "--format=%s", (shop.folder / "seen").read_text().strip())
    assert subject.startswith("feat(US-004)")
    assert "feat(US-006)" in shop.git("log", "--format=%s", shop.git("ls-remote", "origin", "main").split()[0])


def test_a_push_that_fails_is_said_and_stops_nothing(shop: Shop) -> None:
    shop.git("remote", "add", "origin", str(shop.folder / "nowhere.git"))
    done = shop.run(None, "--push", "after-story")
    assert done.code == 0
    assert "could not push US-004" in done.err


# Reviews


def test_a_story_is_reviewed_fixed_and_reviewed_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "tasks.json", {"review": {"enabled": True}})
    first, *others = shop.stories
    changes: Action = {"verdict": {"what": "changes_requested", "feedback": "Use words, not numbers."}}
    told = shell("mv prompt.txt ../")
    plays: dict[str, Any] = {
        first: [
            {"implement": good(first), "review": [changes]},
            {
                "fix": [
                    {"prompt": "prompt.txt"},
                    told,
                    {"append": {"path": f"src/{first}.txt", "text": "words\n"}},
                    {"verdict": {"what": "needs_review", "count": 0}},
                ],
                "review": [{"verdict": "approved"}],
            },
        ]
    }
    plays |= {story: [{"implement": good(story), "review": [{"verdict": "approved"}]}] for story in others}
    done = shop.run(plays)
    assert done.code == 0, done.out + done.err
    modes = [ended.mode for ended in shop.ended() if ended.story == first]
    assert modes == [Mode.IMPLEMENT, Mode.REVIEW, Mode.FIX, Mode.REVIEW]
    assert "Use words, not numbers." in (shop.folder / "prompt.txt").read_text()
    story = next(s for s in json.loads(shop.ref.path.read_text())["userStories"] if s["id"] == first)
    assert (story["passes"], story["reviewStatus"], story["reviewCount"]) == (True, "approved", 2)
    subjects = [s for s in shop.git("log", "--format=%s").splitlines() if first in s]
    assert [subject.partition("(")[0] for subject in subjects] == ["review", "fix", "review", "feat"]
    assert ralph_here("check", cwd=shop.root).code == 0
    assert ralph_here("replay", cwd=shop.root).code == 0


LIES: dict[str, Sequence[Action]] = {
    "changes files": [{"verdict": "approved"}, BAD],
    "says nothing": [{"say": "Looks good to me."}],
    "approves another one": [{"verdict": {"what": "approved", "story": "US-005"}}],
    "asks for nothing": [{"verdict": {"what": "changes_requested", "feedback": ""}}],
    "approves what fails": [{"verdict": "approved"}, {"write": {"path": "src/US-004.txt", "text": "bad\n"}}],
    "breaks the plan": [{"corrupt": "truncate"}],
}


@pytest.mark.parametrize("some", [list(LIES)[:3], list(LIES)[3:]], ids=["first", "others"])
def test_a_review_that_does_anything_else_counts_for_nothing(tmp_path: Path, some: list[str]) -> None:
    breaker = {"no_progress_threshold": 0, "same_error_threshold": 0}
    shop = Shop(tmp_path, "tasks.json", {"review": {"enabled": True}, "circuit_breaker": breaker})
    first = shop.stories[0]
    lies: list[dict[str, Sequence[Action]]] = [{"review": LIES[name]} for name in some]
    review: Attempts = [{"implement": good(first)}, *lies]
    done = shop.run({first: review}, "-n", str(1 + len(some)))
    assert done.code == 1
    implement, *reviews = shop.ended()
    assert implement.kind is Kind.ACCEPTED
    for name, ended in zip(some, reviews, strict=True):
        assert (ended.mode, ended.completes) == (Mode.REVIEW, False), f"{name}: {ended.headline}"
    assert first in shop.open()
    assert ralph_here("check", cwd=shop.root).code == 0
    assert ralph_here("replay", cwd=shop.root).code == 0
