"""One run, agents of two vendors: who works when one cannot, who reviews whom, and what the run says about it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph
from support.plugins import register
from support.vendors import POINTS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("git_identity")]

WORKS = """
case "$RALPH_MODE" in
  review) echo '{"review": {"verdict": "approved"}}' > "$RALPH_REQUEST_FILE" ;;
  *) date +%N >> "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE" ;;
esac
"""
EASY = "Fix a typo in the readme"
HARD = "Migrate the parser to concurrent, encrypted transactions"


class Project:
    def __init__(self, folder: Path) -> None:
        self.root, self._bin, self._site = folder / "repo", folder / "bin", folder / "site"
        self._bin.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            register(self._site, patch, "two-vendors", "1.0", POINTS)

    def agent(self, name: str, *lines: str) -> None:
        program = self._bin / name
        program.write_text("\n".join(("#!/bin/sh", "cat > /dev/null", *lines)) + "\n")
        program.chmod(0o755)

    def plan(self, *titles: str, **settings: Any) -> None:
        stories = [
            {"id": f"S-{n}", "title": title, "acceptanceCriteria": ["c"], "priority": n, "passes": False, "notes": ""}
            for n, title in enumerate(titles, 1)
        ]
        head = {"feature": "work", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
        (self.root / ".ralph/work").mkdir(parents=True)
        (self.root / ".ralph/work/prd.json").write_text(json.dumps(head | {"userStories": stories}))
        basic = {
            "agent": {"name": "ada"},
            "checks": [{"name": "true", "command": "true"}],
            "review": {"when": "never"},
            "proof": {"minimum": "unproven"},
            "archive": {"on_complete": False},
            "branch": {"auto_create": False},
        }
        (self.root / ".ralph/config.yaml").write_text(json.dumps(basic | settings))
        for command in ("init -q -b main", "add -A", "commit -qm start"):
            subprocess.run(["git", *command.split()], cwd=self.root, check=True)

    def ralph(self, *words: str, trust: str = "1") -> Completed:
        tests = Path(__file__).resolve().parents[1]
        env = {
            "RALPH_TRUST": trust,
            "PYTHONPATH": f"{self._site}:{tests}",
            "PATH": f"{self._bin}:{os.environ['PATH']}",
        }
        return ralph(*words, cwd=self.root, env=env)

    def run(self, *flags: str) -> tuple[Completed, list[dict[str, Any]]]:
        done = self.ralph("run", "--json", *flags)
        return done, [json.loads(line)["event"] for line in done.out.splitlines() if line.startswith("{")]

    def trailers(self, key: str) -> list[str]:
        form = f"--format=%(trailers:key={key},valueonly)"
        log = subprocess.run(["git", "log", "--reverse", form], cwd=self.root, check=True, capture_output=True)
        return log.stdout.decode().split()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def sessions(events: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Story, mode and agent of each session, in order."""
    started = {e["iteration"]: (e["story"], e["mode"]) for e in events if e["type"] == "IterationStarted"}
    return [(*started[e["iteration"]], e["agent"]) for e in events if e["type"] == "AgentStarted"]


def test_a_limit_of_one_vendor_does_not_pause_the_other(project: Project) -> None:
    project.agent("ada", "echo limit 7200")
    project.agent("bob", WORKS)
    project.plan(EASY, EASY, fallback=["bob"])
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-1", "implement", "bob"), ("S-2", "implement", "bob")]
    assert not [e for e in events if e["type"] == "WaitStarted"]
    assert project.trailers("Ralph-Agent") == ["bob", "bob"]


def test_a_limit_that_is_reported_by_the_way_pauses_only_who_reported_it(project: Project) -> None:
    """The session does its work although its limit is reached now; the next one is for the other vendor."""
    project.agent("ada", WORKS, "echo limit 7200")
    project.agent("bob", WORKS)
    project.plan(EASY, EASY, fallback=["bob"])
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-2", "implement", "bob")]
    assert not [e for e in events if e["type"] == "WaitStarted"]


def test_an_unreachable_service_is_replaced_after_two_tries(project: Project) -> None:
    project.agent("ada", "echo unreachable; exit 1")
    project.agent("bob", WORKS)
    project.plan(EASY, EASY, fallback=["bob"])
    done, events = project.run()
    assert done.code == 0, done.err
    who = [agent for _, _, agent in sessions(events)]
    assert who == ["ada", "ada", "bob", "bob"]
    assert len([e for e in events if e["type"] == "WaitStarted"]) == 1, "only before the same service is tried again"


@pytest.mark.parametrize("trouble", ["echo no-login; exit 1", None])
def test_an_agent_that_cannot_be_used_is_replaced(project: Project, trouble: str | None) -> None:
    """A fallback that is not logged in, or is not installed, does not end the run of the others."""
    project.agent("ada", "[ -e ../limited ] || { touch ../limited; echo limit 1; exit 1; }", WORKS)
    if trouble:
        project.agent("bob", trouble)
    project.plan(EASY, fallback=["bob"])
    done, events = project.run()
    assert done.code == 0, done.err
    assert [agent for _, _, agent in sessions(events) if agent == "ada"] == ["ada", "ada"]


def test_without_another_choice_an_agent_that_cannot_be_used_ends_the_run(project: Project) -> None:
    project.agent("ada", "echo no-login; exit 1")
    project.agent("bob", "echo no-login; exit 1")
    project.plan(EASY, fallback=["bob"])
    _, events = project.run()
    assert (events[-1]["reason"], [agent for _, _, agent in sessions(events)]) == ("misconfigured", ["ada", "bob"])


def test_routing_chooses_agents(project: Project) -> None:
    project.agent("ada", WORKS, "echo $1 > ../model")
    project.agent("bob", WORKS)
    project.plan(EASY, HARD, routing={"enabled": True, "complex": "bob/large"})
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-2", "implement", "bob")]
    assert [e["argv"][1] for e in events if e["type"] == "AgentStarted"] == ["", "large"], "haiku is no model of ada"
    told = project.ralph("explain", "route", "S-2").out
    assert "bob, large (routing: the story looks complex)" in told


def test_a_limit_of_the_routed_agent_lets_the_other_stories_go_on(project: Project) -> None:
    project.agent("ada", WORKS)
    project.agent("bob", "echo limit 7200")
    project.plan(HARD, EASY, routing={"enabled": True, "complex": "bob"}, on_limit="exit")
    done, events = project.run()
    assert sessions(events) == [("S-1", "implement", "bob"), ("S-2", "implement", "ada")]
    assert (done.code, events[-1]["reason"]) == (2, "usage-limit")


REVIEWED = {"review": {"when": "always", "agent": "other"}, "fallback": ["bob"]}


def test_another_vendor_reviews(project: Project) -> None:
    project.agent("ada", WORKS)
    project.agent("bob", WORKS)
    project.plan(EASY, **REVIEWED)
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-1", "review", "bob")]
    assert project.trailers("Ralph-Agent") == ["ada", "bob"]


def test_the_first_agent_reviews_what_a_fallback_did_also_in_the_next_run(project: Project) -> None:
    project.agent("ada", 'case "$RALPH_MODE" in review) ;; *) echo limit 1; exit 1 ;; esac', WORKS)
    project.agent("bob", WORKS)
    project.plan(EASY, **REVIEWED)
    first, events = project.run("-n", "1")
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-1", "implement", "bob")], first.err
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "review", "ada")]


def test_other_needs_another_agent(project: Project) -> None:
    project.agent("ada", WORKS)
    project.plan(EASY, review={"when": "always", "agent": "other"})
    done = project.ralph("run")
    assert (done.code, "`other`, but ada is the only agent" in done.err) == (64, True), done.err


def test_two_reviewers_of_two_vendors_review_one_story(project: Project) -> None:
    project.agent("ada", WORKS, "echo tokens gpt-5.5 1000000 0")
    project.agent("bob", WORKS, 'echo "$RALPH_REVIEWER $1" >> ../asked', "echo tokens nobody-knows 500 5")
    project.plan(EASY, review={"when": "always", "reviewers": ["quality@ada", "security@bob/large"]})
    done, events = project.run()
    assert done.code == 0, done.err
    assert sessions(events) == [("S-1", "implement", "ada"), ("S-1", "review", "ada"), ("S-1", "review", "bob")]
    assert (project.root.parent / "asked").read_text() == "security@bob/large large\n"
    by = {row["name"]: row for row in project.ralph("runs", "cost", "--by", "agent", "--json").json["rows"]}
    assert (by["ada"]["iterations"], by["ada"]["estimated_usd"]) == (2, 10)
    assert (by["bob"]["iterations"], by["bob"]["unknown"]) == (1, 1)
    report = project.ralph("report", "--json").json
    assert (report["agents"], report["cost_is_estimated"]) == ({"ada": 2, "bob": 1}, True)
    assert report["stories"][0]["by"] == [
        "implement by ada/gpt-5.5", "review by ada/gpt-5.5", "review by bob/nobody-knows",
    ]  # fmt: skip
    text = project.ralph("report").out
    assert "ada 2 iterations, bob 1 iteration" in text
    assert "~$10.00 and 1 session of unknown cost" in text
    stats = project.ralph("runs", "stats").out
    assert "~$5.00 +?" in stats, stats


def test_an_unknown_agent_of_a_reviewer_is_refused(project: Project) -> None:
    project.agent("ada", WORKS)
    project.plan(EASY, review={"when": "always", "reviewers": ["quality@bb"]})
    done = project.ralph("run")
    assert done.code == 65
    assert "unknown agent 'bb'" in done.err


@pytest.mark.parametrize(
    "settings",
    [
        {"routing": {"enabled": True, "complex": "bob/large"}},
        {"review": {"when": "always", "reviewers": ["quality@bob"]}},
        {"fallback": ["bob"]},
        {"review": {"when": "always", "agent": "bob"}},
    ],
)
def test_a_workspace_that_names_another_agent_needs_trust(project: Project, settings: dict[str, Any]) -> None:
    project.plan(EASY, **settings)
    shown = project.ralph("trust", "--show", trust="").out
    assert "bob" in shown


def test_doctor_looks_for_every_agent(project: Project, tmp_path: Path) -> None:
    project.agent("ada", WORKS)
    project.plan(EASY, routing={"enabled": True, "complex": "bob"}, review={"when": "always"})
    assert "bob is not installed" in project.ralph("run").err
    said = project.ralph("doctor")
    assert "bob is not installed" in said.out, said.out + said.err
    project.agent("bob", WORKS)
    assert f"routing.complex bob: {tmp_path / 'bin' / 'bob'}" in project.ralph("doctor").out
