"""A small real project that a scripted agent works through, and everything about it that a run must not spoil.

Of three stories the first goes well, the first attempt at the second breaks a check, and in the third the agent
commits itself. Around them are a person's own things: branches, tags, a stash, and uncommitted files where a run
allows them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ralph.core.events import AnyEvent
from ralph.core.verdict import Kind
from ralph.journal.records import read
from support.cli import Completed

DRIVER = Path(__file__).with_name("crash_driver.py")
_IDENTITY = "[user]\n\tname = Ada Tester\n\temail = ada@example.test\n[init]\n\tdefaultBranch = main\n"
_RUN = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b")
_IGNORED = (
    *("*.log", "build/", ".ralph-active", ".ralph/**/runs/", ".ralph/current-story", ".ralph/.checkpoint"),
    *(".ralph/COMPLETE", ".ralph/run_state.json", ".ralph/aggregate.json", ".ralph/is-set-up"),
)
_RECORD = "chore(ralph): record run "

_WELL = """\
    - implement:
        - write: {path: src/one.txt, text: "one\\n"}
        - claim: done
"""
_BROKEN = """\
    - implement:
        - append: {path: src/base.txt, text: "and more\\n"}
        - delete: src/zero.txt
        - write: {path: src/two.txt, text: "BROKEN\\n"}
        - write: {path: extra/deep/file.txt, text: "not asked for\\n"}
        - run: git add src/two.txt
        - claim: done
"""
_REPAIRED = """\
    - implement:
        - write: {path: src/two.txt, text: "two\\n"}
        - claim: done
"""
_COMMITTING = """\
    - implement:
        - write: {path: src/three.txt, text: "three\\n"}
        - run: git add src/three.txt && git commit -q -m "three, by the agent itself" -- src/three.txt
        - write: {path: src/rest.txt, text: "what it did not commit\\n"}
        - claim: done
"""
CHECK = "! grep -rq BROKEN src\n"
CONFIG = """\
agent: {name: scripted, script: .ralph/script.yaml}
review: {enabled: false}
archive: {on_complete: false}
checks:
  - {name: words, command: sh check.sh}
"""


class Scenario(NamedTuple):
    """A plan, what the agent does with it, and what comes of each attempt."""

    layout: str
    stories: dict[str, str]
    script: str
    attempts: list[tuple[str, Kind]]
    check: str = CHECK
    config: str = CONFIG
    hook: str = ""
    """The project's own pre-commit hook."""


def whole(layout: str) -> Scenario:
    """The three stories."""
    one, two, three = ("1.1", "1.2", "1.3") if layout == "spec.md" else ("US-001", "US-002", "US-003")
    return Scenario(
        layout,
        {one: "Say one", two: "Say two", three: "Say three"},
        f"stories:\n  '{one}':\n{_WELL}  '{two}':\n{_BROKEN}{_REPAIRED}  '{three}':\n{_COMMITTING}",
        [(one, Kind.ACCEPTED), (two, Kind.REJECTED), (two, Kind.ACCEPTED), (three, Kind.ACCEPTED)],
        hook="exit 0\n" if layout == "plan.md" else "",
    )


def short(layout: str) -> Scenario:
    """One story that fails, and is then done by an agent that commits: all that settling can do."""
    return Scenario(
        layout,
        {"US-001": "Say it all"},
        f"stories:\n  US-001:\n{_BROKEN}{_COMMITTING}",
        [("US-001", Kind.REJECTED), ("US-001", Kind.ACCEPTED)],
    )


def reviewed() -> Scenario:
    """One story in all modes: it fails, is done, reviewed, fixed, and reviewed again."""
    return Scenario(
        "tasks.json",
        {"US-001": "Say it"},
        f"""stories:
  US-001:
{_BROKEN}      review: [{{verdict: {{what: changes_requested, feedback: a third word}}}}]
{_REPAIRED}      review: [{{verdict: approved}}]
      fix: [{{write: {{path: src/third.txt, text: third}}}}, claim]
""",
        [("US-001", Kind.REJECTED), *[("US-001", Kind.ACCEPTED)] * 4],
        config=CONFIG.replace("review: {enabled: false}", "review: {enabled: true}"),
    )


def hooked() -> Scenario:
    """The project's hook finds what the checks do not."""
    return short("tasks.json")._replace(check="exit 0\n", hook=CHECK)


def stepped() -> Scenario:
    """Steps of the project's own, one of them to set up."""
    steps = """\
steps:
  - {type: command, name: prepare, config: {command: echo made >> build/made.txt, marker_file: .ralph/is-set-up}}
  - {type: agent, name: agent}
  - {type: command, name: words, config: {command: sh check.sh}}
  - {type: git-commit, name: commit}
"""
    scenario = short("steps")
    attempts = [("", Kind.ACCEPTED), *scenario.attempts]
    return scenario._replace(config=CONFIG + steps, attempts=attempts)


def _story(number: int, name: str, title: str) -> dict[str, Any]:
    wanted = {"description": "A word in a file.", "acceptanceCriteria": ["the word is there"], "priority": number}
    return {"id": name, "title": title, **wanted, "notes": "", "dependsOn": []}


def _tasks_json(stories: Mapping[str, str]) -> str:
    review = {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
    listed = [_story(number, *story) | review for number, story in enumerate(stories.items(), 1)]
    plan = {"project": "words", "branchName": "main", "description": "Words.", "verifyCommands": []}
    return json.dumps(plan | {"userStories": listed}, indent=2) + "\n"


def _feature(stories: Mapping[str, str]) -> str:
    listed = [_story(number, *story) | {"passes": False} for number, story in enumerate(stories.items(), 1)]
    plan = {"feature": "words", "branchName": "main", "description": "Words.", "createdAt": "2026-01-01T00:00:00Z"}
    return json.dumps(plan | {"userStories": listed}, indent=2) + "\n"


def _steps(stories: Mapping[str, str]) -> str:
    todo = {"status": "todo", "attempts": 0}
    listed = [_story(number, *story) | todo for number, story in enumerate(stories.items(), 1)]
    return json.dumps({"project": "words", "tasks": listed}, indent=2) + "\n"


def _plan_md(stories: Mapping[str, str]) -> str:
    items = "".join(f"- [ ] {name}: {title}\n" for name, title in stories.items())
    blocks = "".join(f"\n### {name}: {title}\n\nA word in a file.\n" for name, title in stories.items())
    return f"# Plan: words\n\n## Stories\n\n{items}\n## Details\n{blocks}"


def _spec_md(stories: Mapping[str, str]) -> str:
    items = "".join(f"- [ ] **{name}** {title}\n" for name, title in stories.items())
    return f"# Spec: words\n\n## Phase 1\n\n{items}"


PLANS: dict[str, tuple[str, Callable[[Mapping[str, str]], str]]] = {
    "feature": (".ralph/words/prd.json", _feature),
    "plan.md": (".ralph/PRD-1/plan.md", _plan_md),
    "spec.md": (".ralph/spec.md", _spec_md),
    "steps": (".ralph/prd.json", _steps),
    "tasks.json": (".ralph/words/tasks.json", _tasks_json),
}
"""Layout → where its plan is, and its text."""


class Outcome(NamedTuple):
    """What a finished loop has made of the project, without what differs from run to run."""

    commits: list[tuple[str, dict[str, str]]]
    """Subjects and files, the oldest first, without those that only record a run."""
    plan: str
    beside: Any
    status: str
    theirs: dict[str, str]
    """What belongs to the person: it has to be as it was before the first run."""


class LoopProject:
    """`folder` holds the project, a home and the state: all that a run can reach."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.folder = folder
        self.scenario = scenario
        self.root = folder / "project"
        self.home = folder / "home"
        self.state = self.home / "state"
        self.plan = self.root / PLANS[scenario.layout][0]

    @classmethod
    def make(cls, folder: Path, scenario: Scenario) -> LoopProject:
        project = cls(folder, scenario)
        project.home.mkdir(parents=True)
        (project.home / ".gitconfig").write_text(_IDENTITY)
        path, text_of = PLANS[scenario.layout]
        files = {
            path: text_of(scenario.stories),
            ".ralph/script.yaml": scenario.script,
            ".ralph/config.yaml": scenario.config,
            ".ralph/kept.txt": "as committed\n",
            ".gitignore": "".join(f"{name}\n" for name in _IGNORED),
            "check.sh": scenario.check,
            "src/base.txt": "base\n",
            "src/zero.txt": "zero\n",
        }
        for name, content in files.items():
            project.write(name, content)
        project.git("init", "-q")
        project.git("add", "-A")
        project.git("commit", "-q", "-m", "the project")
        if scenario.hook:
            project.write(".git/hooks/pre-commit", f"#!/bin/sh\n{scenario.hook}", mode=0o755)
        project.put_in_own_things()
        return project

    def put_in_own_things(self) -> None:
        """What a person may have lying around when a run starts."""
        self.git("tag", "-a", "-m", "annotated", "v0")
        self.git("branch", "experiment")
        tree = self.git("write-tree")
        commit = self.git("commit-tree", tree, "-p", "HEAD", "-m", "on a branch of its own")
        self.git("update-ref", "refs/heads/elsewhere", commit)
        self.write("src/zero.txt", "half an idea\n")
        self.git("stash", "push", "-q", "-m", "half an idea")
        self.write("build/out.bin", "\0built\n")
        self.write("notes.log", "ignored, but dear\n")
        self.write(".ralph/ideas.txt", "untracked\n")
        self.write(".ralph/kept.txt", "edited, not staged\n")
        self.write(".ralph/staged.txt", "staged, not committed\n")
        self.git("add", ".ralph/staged.txt")

    def copy(self, folder: Path) -> LoopProject:
        shutil.copytree(self.folder, folder, symlinks=True)
        return LoopProject(folder, self.scenario)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "RALPH_STATE_HOME": str(self.state), "RALPH_TRUST": "1"}
        return {**os.environ, **own, "XDG_CONFIG_HOME": str(self.home / ".config")}

    def git(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(["git", *args], cwd=self.root, env=self.env, capture_output=True, check=False)
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout.decode("utf-8", "replace").removesuffix("\n")

    def events(self) -> list[AnyEvent]:
        """Of all runs, in order."""
        return [record.event for path in self.journals() for record in read(path)]

    def journals(self) -> list[Path]:
        """In the order of the runs. Their names are not enough: two runs may start in the same second."""
        found = self.state.glob("*/runs/*/events.jsonl")
        return sorted(found, key=lambda path: next((record.t for record in read(path)), 0))

    def processes(self) -> list[int]:
        """Whoever works in the project: agents, checks, gits, and what they left behind."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                inside = (process / "cwd").readlink().is_relative_to(self.folder)
                ended = (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if inside and not ended:
                found.append(int(process.name))
        return found

    def outcome(self) -> Outcome:
        states = [path.read_text() for path in self.state.glob("*/plans/*/beside.json")]
        return Outcome(
            commits=self._commits(),
            plan=_normal(self.plan.read_text()),
            beside=json.loads(_normal(states[0])) if states else None,
            status=self.git("status", "--porcelain", "--untracked-files=all"),
            theirs=self.theirs(),
        )

    def theirs(self) -> dict[str, str]:
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        refs = [ref for ref in refs if not ref.startswith(("refs/heads/main ", "refs/ralph/"))]
        names = ("build/out.bin", "notes.log", ".ralph/ideas.txt", ".ralph/kept.txt", ".ralph/staged.txt")
        present = [name for name in (*names, ".git/config") if (self.root / name).is_file()]
        files = {name: (self.root / name).read_text() for name in present}
        hooks = {str(path): path.read_text() for path in sorted(self.root.glob(".git/hooks/*"))}
        return files | {
            "refs": "\n".join(refs),
            "hooks": str({Path(name).name: text for name, text in hooks.items()}),
            "head": self.git("symbolic-ref", "HEAD"),
            "stash": self.git("stash", "list", "--format=%H %gs"),
            "staged": self.git("diff", "--cached", "--raw", "--abbrev=40"),
            "edited": self.git("diff", "--raw", "--abbrev=40", "--", ".", f":!{os.path.relpath(self.plan, self.root)}"),
        }

    def _commits(self) -> list[tuple[str, dict[str, str]]]:
        listed = []
        for item in self.git("log", "--reverse", "--format=%H %s", "main").splitlines():
            commit, _, subject = item.partition(" ")
            if subject.startswith(_RECORD):
                touched = self.git("diff-tree", "-r", "--name-only", "--no-commit-id", commit).splitlines()
                assert all(_is_progress(path) for path in touched), (subject, touched)
                continue
            listed.append((subject, self.files_in(commit)))
        return listed

    def files_in(self, commit: str) -> dict[str, str]:
        """Path → content, or the object where it is long; without the logs that a run keeps for people."""
        paths = self.git("ls-tree", "-r", "--format=%(objectname) %(path)", commit).splitlines()
        found = {path: name for name, _, path in (item.partition(" ") for item in paths) if not _is_progress(path)}
        plan = os.path.relpath(self.plan, self.root)
        if plan in found:
            found[plan] = _normal(self.git("cat-file", "blob", found[plan]))
        return found

    def health(self) -> list[str]:
        """What is wrong with the repository, or left lying around in it."""
        done = subprocess.run(
            ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            check=False,
        )
        said = (done.stdout + done.stderr).decode().splitlines()
        found = [f"fsck: {text}" for text in said] if done.returncode or said else []
        found += [f"left behind: {path}" for path in self.root.glob(".git/**/*.lock")]
        found += [f"left behind: {path}" for path in self.root.rglob("*.tmp")]
        found += [f"rescue {name}" for name in self.rescues() if self.git("cat-file", "-t", name) != "commit"]
        return found

    def rescues(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue/").splitlines()


def shell_project(
    tmp_path: Path, body: str, *, name: str = "command", layout: str = "tasks.json", **config: object
) -> LoopProject:
    """A project whose agent is a shell script."""
    settings = {"name": name, "command": ["sh", str(tmp_path / "agent.sh")]}
    more = {"review": {"enabled": False}, "archive": {"on_complete": False}, "checks": ["sh check.sh"], **config}
    scenario = short(layout)._replace(config=json.dumps({"agent": settings} | more))
    (tmp_path / "agent.sh").write_text(f"cat > /dev/null\n{body}")
    return LoopProject.make(tmp_path / "loop", scenario)


def run_ralph(project: LoopProject, *arguments: str, **env: str) -> Completed:
    """The real command line, by default `run --plain`."""
    command = [sys.executable, "-W", "error", "-m", "ralph", *(arguments or ("run", "--plain"))]
    return _complete(project, command, env)


def start_ralph(project: LoopProject, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    """The same, in the background; `finish` waits for its end."""
    command = [sys.executable, "-W", "error", "-m", "ralph", *(arguments or ("run", "--plain"))]
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    env = {**project.env, **env}
    return subprocess.Popen(command, cwd=project.root, env=env, stdin=nothing, stdout=pipe, stderr=pipe)


def finish(process: subprocess.Popen[bytes], timeout: float = 60) -> Completed:
    out, err = process.communicate(timeout=timeout)
    return Completed(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def run_driven(project: LoopProject, how: str, at: int, log: Path, **env: str) -> Completed:
    """`ralph run` with trouble at one point; see `crash_driver`."""
    where = [str(project.root), str(project.state)]
    command = [sys.executable, str(DRIVER), how, str(at), str(log), *where, "--", "run", "--plain"]
    return _complete(project, command, env)


def _complete(project: LoopProject, command: list[str], env: Mapping[str, str]) -> Completed:
    done = subprocess.run(
        command,
        cwd=project.root,
        env={**project.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Completed(done.returncode, *(stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr)))


def _is_progress(path: str) -> bool:
    return Path(path).name in ("progress.txt", "progress.md")


def _normal(text: str) -> str:
    return re.sub(r"\biteration \d+", "iteration N", _RUN.sub("RUN", text))
