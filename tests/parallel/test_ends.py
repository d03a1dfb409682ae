"""How runs with several workers end: signals, requests, limits over all workers, and workers that are killed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from ralph.core.events import (
    AgentStarted,
    IterationEnded,
    IterationStarted,
    Paused,
    Queued,
    WaitStarted,
    WorkerLost,
    WorkerStarted,
)
from support.cli import ralph
from support.parallel_runs import Project, writes

HALF = {"write": {"path": "half.txt", "text": "half\n"}}


def test_a_killed_worker_costs_its_story_no_attempt_and_no_work(tmp_path: Path) -> None:
    stories = {
        "S-1": [[HALF, {"sleep": 60}], writes("one.txt", "1\n")],
        "S-2": [writes("two.txt", "2\n")],
    }
    project = Project(tmp_path, stories)
    process = project.start()
    begun = project.wait_for(AgentStarted, where=lambda event: event.iteration == 1)
    project.wait_for(IterationEnded)  # of S-2: by now the first session has written its file
    worker = next(event.worker for event in project.events(IterationStarted) if event.iteration == begun[0].iteration)
    pid = next(event.pid for event in project.events(WorkerStarted) if event.worker == worker)
    os.kill(pid, signal.SIGKILL)
    assert project.finish(process) == 0
    assert [event.iteration for event in project.events(WorkerLost)] == [1]
    assert project.kinds("S-1") == ["interrupted", "accepted"]
    assert next(event.attempts for event in project.events(IterationEnded) if event.story == "S-1") == 0
    project.check("S-1", "S-2")
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue").splitlines()
    assert [project.git("show", f"{ref}:half.txt") for ref in refs] == ["half"]


def test_ctrl_c_ends_all_workers_and_loses_nothing(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=12)] for n in (1, 2)}
    stories["S-3"] = [writes("f3.txt", "3\n")]
    project = Project(tmp_path, stories)
    process = project.start(workers=3)
    project.wait_for(AgentStarted, 3)
    project.wait_for(IterationEnded)
    process.send_signal(signal.SIGINT)
    assert project.finish(process) == 130
    assert project.reason() == "interrupted"
    assert project.kinds("S-1") == project.kinds("S-2") == ["interrupted"]
    project.check("S-3")
    script = tmp_path / "script.yaml"
    script.write_text(script.read_text().replace('{"sleep": 12}, ', ""))  # the next run need not wait
    project.run(workers=3)
    project.check("S-1", "S-2", "S-3")


def test_stop_lets_sessions_end_and_starts_no_further_ones(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=3)] for n in range(1, 5)}
    project = Project(tmp_path, stories)
    process = project.start()
    project.wait_for(AgentStarted, 2)
    assert ralph("stop", cwd=project.root).code == 0
    assert project.finish(process) == 1
    assert project.reason() == "on-request"
    project.check("S-1", "S-2")


def test_stop_now_ends_the_agents_of_all_workers_and_the_next_run_starts_them_again(tmp_path: Path) -> None:
    stories = {f"S-{n}": [[{"sleep": 60}], writes(f"f{n}.txt", f"{n}\n")] for n in (1, 2)}
    project = Project(tmp_path, stories)
    process = project.start()
    project.wait_for(AgentStarted, 2)
    begun = time.monotonic()
    assert ralph("stop", "--now", cwd=project.root).code == 0
    code = project.finish(process)
    assert time.monotonic() - begun < 30
    assert code in (130, 143)
    ended = project.events(IterationEnded)
    assert [(event.kind.value, event.attempts) for event in ended] == [("interrupted", 0)] * 2
    project.check()
    script = json.loads((tmp_path / "script.yaml").read_text())
    script["stories"] = {story: sessions[1:] for story, sessions in script["stories"].items()}
    (tmp_path / "script.yaml").write_text(json.dumps(script))
    project.run()
    project.check("S-1", "S-2")


def test_pause_waits_for_the_sessions_that_run_and_resume_starts_the_next(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=1)] for n in (1, 2, 3)}
    project = Project(tmp_path, stories)
    process = project.start()
    project.wait_for(AgentStarted, 2)
    assert ralph("pause", cwd=project.root).code == 0
    project.wait_for(Paused)
    assert len(project.events(IterationEnded)) == 2
    assert "paused" in ralph("status", cwd=project.root).out
    assert ralph("resume", cwd=project.root).code == 0
    assert project.finish(process) == 0
    project.check("S-1", "S-2", "S-3")
    order = project.order()
    assert order.index("begin S-3") > max(order.index("end S-1"), order.index("end S-2"))


def test_a_paused_run_can_be_stopped(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n")] for n in (1, 2, 3, 4)}
    project = Project(tmp_path, stories)
    process = project.start()
    project.wait_for(AgentStarted)
    assert ralph("pause", cwd=project.root).code == 0
    project.wait_for(Paused)
    assert ralph("stop", cwd=project.root).code == 0
    assert project.finish(process) == 1
    assert project.reason() == "on-request"
    project.check(*project.done())
    assert 0 < len(project.done()) < 4


def test_the_cap_counts_the_iterations_of_all_workers(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=0.5)] for n in range(1, 6)}
    project = Project(tmp_path, stories)
    project.run("-n", "3", code=1)
    assert project.reason() == "iteration-cap"
    assert len(project.events(IterationStarted)) == 3
    project.check("S-1", "S-2", "S-3")


def test_the_budget_is_one_for_all_workers(tmp_path: Path) -> None:
    cost = {"cost": {"usd": 1.0, "input": 10}}
    stories = {f"S-{n}": [[cost, *writes(f"f{n}.txt", f"{n}\n")]] for n in range(1, 7)}
    project = Project(tmp_path, stories)
    project.run("--max-cost", "2.5", code=4)
    assert project.reason() == "budget"
    spent = sum(event.cost_usd or 0 for event in project.events(IterationEnded))
    assert spent <= 3
    project.check(*project.done())


def test_a_usage_limit_in_one_worker_holds_all(tmp_path: Path) -> None:
    stories = {
        "S-1": [[{"limit": {"seconds": 3}}], writes("one.txt", "1\n")],
        "S-2": [writes("two.txt", "2\n", seconds=1)],
        "S-3": [writes("three.txt", "3\n")],
    }
    project = Project(tmp_path, stories)
    project.run("--on-limit", "wait")
    assert project.kinds("S-1") == ["limit", "accepted"]
    assert len(project.events(WaitStarted)) == 1
    order = project.order()
    assert order.index("begin S-3") > order.index("end S-1")
    assert order.index("begin S-3") > order.index("end S-2")  # nobody started while the limit held
    project.check("S-1", "S-2", "S-3")


def test_a_question_leaves_its_story_open_and_the_others_go_on(tmp_path: Path) -> None:
    stories = {
        "S-1": [[{"ask": "Which colour?"}]],
        "S-2": [writes("two.txt", "2\n")],
        "S-3": [writes("three.txt", "3\n")],
    }
    project = Project(tmp_path, stories)
    done = project.run(code=None)
    assert project.kinds("S-1")[0] == "blocked"
    assert done.code != 0
    assert "Which colour?" in done.out
    project.check(*project.done())
    assert "S-1" not in project.done()


def test_work_that_waits_in_the_queue_when_ctrl_c_comes_is_merged_next(tmp_path: Path) -> None:
    slow = "test -f readme.txt; if [ -f two.txt ] && [ -f one.txt ]; then sleep 4; fi"
    stories = {
        "S-1": [writes("one.txt", "1\n")],
        "S-2": [writes("two.txt", "2\n", seconds=1)],
        "S-3": [writes("three.txt", "3\n", seconds=8)],
    }
    project = Project(tmp_path, stories, check=slow)
    process = project.start(workers=3)
    project.wait_for(Queued, 2)
    process.send_signal(signal.SIGINT)
    assert project.finish(process) == 130
    queued = [event.commit for event in project.events(Queued)]
    waiting = {event.story for event in project.events(Queued)} - set(project.done())
    assert waiting
    assert not project.processes()
    project.run(workers=3)
    project.check("S-1", "S-2", "S-3")
    with_agent = {event.iteration for event in project.events(AgentStarted)}
    again = {event.story for event in project.events(IterationStarted) if event.iteration in with_agent}
    assert again.isdisjoint(waiting)
    assert all(project.git("cat-file", "-t", commit) == "commit" for commit in queued)


def test_commits_that_a_person_makes_meanwhile_are_the_new_tip(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=2)] for n in (1, 2, 3)}
    project = Project(tmp_path, stories)
    process = project.start()
    project.wait_for(AgentStarted, 2)
    (project.root / "mine.txt").write_text("mine\n")
    project.git("add", "mine.txt")
    project.git("commit", "--quiet", "-m", "Mine")
    mine = project.git("rev-parse", "HEAD")
    assert project.finish(process) == 0
    project.check("S-1", "S-2", "S-3")
    assert project.git("merge-base", mine, "HEAD") == mine
    assert (project.root / "mine.txt").read_text() == "mine\n"


def test_the_summary_names_the_branch_that_has_the_work(tmp_path: Path) -> None:
    """The checkout has a file of the same name, which nobody overwrites."""
    project = Project(tmp_path, {"S-1": [writes("one.txt", "1\n")], "S-2": [writes("two.txt", "2\n")]})
    (project.root / "one.txt").write_text("mine\n")
    done = project.run()
    assert "ralph/work/many, 2 commits in iterations; not in main yet" in done.out
    assert (project.root / "one.txt").read_text() == "mine\n"
    assert project.git("show", "ralph/work/many:one.txt") == "1"
    (project.root / "one.txt").unlink()
    again = project.run()
    assert "not in main yet" not in again.out
    project.check("S-1", "S-2")


def test_the_clones_of_workers_go_when_the_plan_is_done(tmp_path: Path) -> None:
    """Until then the next run uses them, with what is installed there."""
    stories = {f"S-{n}": [[{"run": f"echo {n} > f{n}.txt"}, {"commit": "mine"}, {"claim": "done"}]] for n in (1, 2, 3)}
    project = Project(tmp_path, stories)
    project.run("-n", "2", code=1)
    assert project.clones()
    project.run()
    project.check("S-1", "S-2", "S-3")
    assert project.clones() == []
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/ralph/candidates").splitlines()
    assert sorted(ref.rpartition("/")[2] for ref in refs) == ["1-commits-1", "1-commits-1", "2-commits-1"]
    assert [project.git("log", "-1", "--format=%s", ref) for ref in refs] == ["mine"] * 3


def test_a_progress_log_that_came_back_after_ctrl_c_is_archived_with_its_plan(tmp_path: Path) -> None:
    stories = {"S-1": [writes("one.txt", "1\n")], "S-2": [[{"sleep": 30}], writes("two.txt", "2\n")]}
    project = Project(tmp_path, stories, config={"archive": {"on_complete": True}})
    process = project.start()
    project.wait_for(IterationEnded)
    process.send_signal(signal.SIGINT)
    assert project.finish(process) == 130
    script = json.loads((tmp_path / "script.yaml").read_text())
    script["stories"]["S-2"] = script["stories"]["S-2"][1:]
    (tmp_path / "script.yaml").write_text(json.dumps(script))
    project.run()
    assert project.git("status", "--porcelain", "--untracked-files=all") == ""
    assert not project.plan.parent.exists()
    kept = project.git("ls-tree", "-r", "--name-only", "HEAD", "--", ".ralph/archive").splitlines()
    assert any(path.endswith("/progress.txt") for path in kept), kept


def test_a_frozen_worker_is_given_up_and_its_story_started_again(tmp_path: Path) -> None:
    stories = {"S-1": [[HALF, {"sleep": 60}], writes("one.txt", "1\n")], "S-2": [writes("two.txt", "2\n")]}
    project = Project(tmp_path, stories)
    process = project.start(before="import ralph.run.crew; ralph.run.crew._LONGEST_SILENCE = 5")
    project.wait_for(AgentStarted, where=lambda event: event.iteration == 1)
    project.wait_for(IterationEnded)
    worker = next(event.worker for event in project.events(IterationStarted) if event.iteration == 1)
    os.kill(next(event.pid for event in project.events(WorkerStarted) if event.worker == worker), signal.SIGSTOP)
    assert project.finish(process) == 0
    assert [event.why for event in project.events(WorkerLost)] == ["it did not respond for 5 s"]
    assert project.kinds("S-1") == ["interrupted", "accepted"]
    project.check("S-1", "S-2")
