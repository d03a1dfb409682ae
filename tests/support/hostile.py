"""A small real project with all that people keep in a repository, an agent that does what it is told, and a close look
afterwards: what is done is proven, what people had is still there, nothing else was touched, nobody is left alive."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from ralph.core.events import (
    CheckEnded,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Noted,
    Record,
    RescueSaved,
    RunEnded,
)
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from support import stunts
from support.cli import Completed, ralph_here
from support.processes import wait_for
from support.repositories import IDENTITY, listing

Action = str | dict[str, Any]
Actions = Sequence[Action]
Attempts = Sequence[Actions | dict[str, Actions]]

PLAN = ".ralph/feat/prd.json"
CONFIG = """\
agent: {name: scripted}
branch: {auto_create: false}
archive: {on_complete: false}
circuit_breaker: {no_progress_threshold: 0, same_error_threshold: 0}
max_loops_per_task: 0
max_iterations: 60
rate_limit_per_hour: 0
timeout: 20s
idle_timeout: 0
"""
_FILES = {
    ".gitignore": "*.log\nprivate/\n",
    "check.sh": "test -f src/base.txt || exit 3\nif grep -rqs bad src; then echo 'this is bad'; exit 1; fi\n",
    "src/base.txt": "base\n",
    "src/deep/er/file.txt": "deep\n",
    "docs/read me.txt": "read me\n",
    "tool.sh": "#!/bin/sh\necho tool\n",
}
_IGNORED = {"user.log": "a log of the user's\n", "private/notes.txt": "private notes\n"}
_OURS = (".ralph/feat/progress.txt", ".ralph/WAITING", PLAN)
_NOT_OURS = (".", *(f":(exclude){name}" for name in (*_OURS, ".ralph/feat/request.json", f"{PLAN}.moved-*/file")))

_MADE: dict[str, bytes] = {}
"""Projects that were made before, as archives."""

BAD: Action = {"write": {"path": "src/x.txt", "text": "bad\n"}}
"""Work that the check finds out."""


def good(story: str) -> list[Action]:
    """An honest attempt: a real change, and a claim."""
    return [work(story), "claim"]


def work(story: str) -> Action:
    return {"write": {"path": f"src/{story}.txt", "text": f"good work on {story}\n"}}


def shell(line: str) -> Action:
    return {"run": line}


def edit_plan(code: str) -> Action:
    """A change to the plan by hand: a line of Python about the document `d` and its stories `s`."""
    body = (
        f"import json; p = {PLAN!r}; d = json.load(open(p)); s = d['userStories']\n{code}\njson.dump(d, open(p, 'w'))"
    )
    return {"run": f"{quote(sys.executable)} -S - <<'END'\n{body}\nEND"}


class Den:
    """`root` is the workspace; `outside` is what must never change; `home` is the home of whoever runs Ralph."""

    def __init__(self, folder: Path, *, stories: int = 2, config: str = CONFIG) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.outside = folder / "outside"
        self.home = Path(os.environ["HOME"])
        self.stories = [f"US-{n:03}" for n in range(1, stories + 1)]
        self._unpack({**_FILES, PLAN: plan_text(self.stories), ".ralph/config.yaml": config})
        self.before = listing(self.root)
        self.refs = self._refs()
        self.around = listing(self.outside)

    def _unpack(self, files: dict[str, str]) -> None:
        """The same project for every test: made once, with some twenty calls of git, and copied after that."""
        key = json.dumps(files)
        if key not in _MADE:
            self._make(files)
            with io.BytesIO() as packed:
                with tarfile.open(fileobj=packed, mode="w") as archive:
                    archive.add(self.root, "project")
                    archive.add(self.outside, "outside")
                _MADE[key] = packed.getvalue()
            return
        with tarfile.open(fileobj=io.BytesIO(_MADE[key])) as archive:
            archive.extractall(self.folder, filter="fully_trusted")

    def _make(self, files: Mapping[str, str]) -> None:
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada Tester")
        self.git("config", "user.email", "ada@example.test")
        self.write("old.txt", "old\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "long ago")
        for name, text in files.items():
            self.write(name, text)
        (self.root / "tool.sh").chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.git("tag", "v1")
        self.git("branch", "other", "HEAD~1")
        self.write("src/base.txt", "an idea for later\n")
        self.git("stash", "-q")
        for name, text in _IGNORED.items():
            self.write(name, text)
        (self.outside / "data").mkdir(parents=True)
        (self.outside / "data" / "file.txt").write_text("outside\n")
        self.git("init", "-q", "-b", "main", str(self.outside / "repo"))
        self.git("commit", "-q", "--allow-empty", "-m", "outside", cwd=self.outside / "repo")

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """Plain git, as a person would run it."""
        done = subprocess.run(["git", *IDENTITY, *args], cwd=cwd or self.root, capture_output=True, check=False)
        if done.returncode:
            raise AssertionError(f"git {args}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(
        self, stories: Mapping[str, Attempts] | None = None, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """`ralph run` under way, with a script outside of the workspace. Stories that are not named go well."""
        script = self.folder / "script.yaml"
        played = {story: [good(story)] for story in self.stories} | dict(stories or {})
        script.write_text(json.dumps({"acts": stunts.__file__, "stories": played}))  # JSON is YAML
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "ralph", "run", "--plain", "--agent-script", script, *arguments],
            cwd=self.root,
            env={**os.environ, "RALPH_TRUST": "1", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, stories: Mapping[str, Attempts] | None = None, *arguments: str, env: Mapping[str, str] | None = None
    ) -> Completed:
        """`ralph run` to its end, which is never a traceback, and leaves nobody alive."""
        return self.finish(self.start(stories, *arguments, env=env))

    def finish(self, process: subprocess.Popen[bytes]) -> Completed:
        out, err = process.communicate(timeout=120)
        done = Completed(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
        assert "Traceback" not in done.out + done.err, done.err
        assert done.code >= 0, done
        assert done.code != 70, done.err
        self.nobody_is_left()
        return done

    # What Ralph says afterwards.

    @property
    def state(self) -> Path:
        return workspace_state(self.root, os.environ)

    @property
    def runs(self) -> list[str]:
        return list_runs(self.state)

    def records(self, run: str = "") -> list[Record]:
        return list(read(journal_path(self.state, run or self.runs[-1])))

    def ended(self) -> list[IterationEnded]:
        """The iterations of the last run."""
        return [record.event for record in self.records() if isinstance(record.event, IterationEnded)]

    def reason(self) -> str:
        last = self.records()[-1].event
        assert isinstance(last, RunEnded), last
        return last.reason.value

    def notes(self) -> list[str]:
        return [record.event.text for record in self.records() if isinstance(record.event, Noted)]

    def commits(self) -> list[Committed]:
        return [record.event for record in self.records() if isinstance(record.event, Committed)]

    def status(self) -> dict[str, str]:
        done = ralph_here("status", "--json", cwd=self.root)
        assert done.code == 0, done.err
        return {story["id"]: story["state"] for story in done.json["stories"]}

    def rescued(self, number: int, path: str) -> bytes | None:
        """What a file was like when iteration `number` of the last run was undone."""
        spec = f"refs/ralph/rescue/{self.runs[-1]}/{number}:{path}"
        done = subprocess.run(["git", "cat-file", "blob", spec], cwd=self.root, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    # What has to hold after every run, whatever the agent did.

    def check(self) -> None:
        self.nobody_is_left()
        self.check_surroundings()
        self.check_repository()
        self.check_files()
        self.check_views()
        self.check_proofs()

    def nobody_is_left(self) -> None:
        for run in self.runs:
            wait_for(partial(_is_calm, f"RALPH_RUN={run}".encode()), 5)

    def check_surroundings(self) -> None:
        assert listing(self.outside) == self.around, "something outside of the workspace was touched"

    def check_repository(self) -> None:
        assert self.git("symbolic-ref", "HEAD") == "refs/heads/main"
        assert self.git("merge-base", "HEAD", "v1") == self.git("rev-parse", "v1"), "the user's history is gone"
        now = self._refs()
        assert now == self.refs, {
            name: now.get(name) for name in now | self.refs if now.get(name) != self.refs.get(name)
        }
        self.git("fsck", "--strict", "--no-dangling", "--no-progress")
        locks = list((self.root / ".git").rglob("*.lock"))
        assert not locks, locks

    def check_files(self) -> None:
        """The user's files are as they were; the only others are those of accepted stories; all of it is committed."""
        now = listing(self.root)
        done = {f"src/{story}.txt" for story, state in self.status().items() if state == "done"}
        lost = [name for name in self.before if name not in _OURS and now.get(name) != self.before[name]]
        assert not lost, lost
        more = now.keys() - self.before.keys() - {*_OURS, *done}
        assert not more, more
        assert self.git("status", "--porcelain", "--untracked-files=all", "--", *_NOT_OURS) == ""
        assert PLAN in self.git("ls-files").splitlines()

    def check_views(self) -> None:
        """Lint, log, list and replay work on what was left behind."""
        assert ralph_here("check", cwd=self.root).code == 0
        assert ralph_here("runs", cwd=self.root).code == 0
        for run in self.runs:
            assert ralph_here("log", run, cwd=self.root).code == 0
            replayed = ralph_here("replay", run, cwd=self.root)
            assert replayed.code == 0, replayed.out

    def check_proofs(self) -> None:
        """Nothing is done without a commit, and a check that passed on the very tree."""
        proven = set()
        for run in self.runs:
            records = self.records(run)
            for ended in (record.event for record in records if isinstance(record.event, IterationEnded)):
                if ended.completes:
                    proven.add(ended.story)
                    self._check_proof(records, ended)
        done = {story for story, state in self.status().items() if state == "done"}
        assert done == proven, (done, proven)

    def _check_proof(self, records: Iterable[Record], ended: IterationEnded) -> None:
        events = [record.event for record in records]
        number = ended.iteration
        checks = [event for event in events if isinstance(event, CheckEnded) and event.iteration == number]
        passed = [check.result.name for check in checks if check.result.passed]
        assert any(ended.story in name for name in passed), f"{ended.story} is done and was not checked: {passed}"
        judged = next(event for event in events if isinstance(event, Judged) and event.iteration == number)
        assert all(check.passed for check in judged.evidence.checks)
        assert ended.proven
        assert self.git("merge-base", "--is-ancestor", ended.commit, "HEAD") == ""
        different = self.git("diff", "--name-only", checks[-1].tree, ended.commit, "--", *_NOT_OURS)
        assert different == "", f"what was committed is not what was checked: {different}"

    def check_each(self, expected: Mapping[str, tuple[Actions, Kind]]) -> None:
        """Each of these attempts at the first story got its verdict, and left the files as it had found them."""
        ended = self.ended()
        starts = [record.event for record in self.records() if isinstance(record.event, IterationStarted)]
        starts.append(starts[-1])  # what follows on the last one is looked at by `check_files`
        rescues = {r.event.iteration for r in self.records() if isinstance(r.event, RescueSaved)}
        for (name, (_, kind)), iteration, start, following in zip(
            expected.items(), ended, starts, starts[1:], strict=False
        ):
            assert (iteration.kind, iteration.completes) == (kind, False), f"{name}: {iteration.headline}"
            trees = (start.checkpoint["tree"], following.checkpoint["tree"])
            assert self.git("diff", "--name-only", *trees, "--", *_NOT_OURS) == "", name
            if iteration.files:
                assert iteration.iteration in rescues, f"{name}: nothing was saved"
        assert len(ended) == len(expected)

    def _refs(self) -> dict[str, str]:
        """Everything of the user's that has a name in git, but for the branch that is worked on; and the stash."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        refs = dict(line.split(" ") for line in listed if not line.startswith("refs/ralph/"))
        del refs["refs/heads/main"]
        return refs | {"stashes": self.git("stash", "list", "--format=%H")}


def _is_calm(mark: bytes) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                return False
        except OSError:
            continue
    return True


def plan_text(stories: Sequence[str]) -> str:
    entries = [
        {
            "id": story,
            "title": f"Write {story}",
            "description": "As a user I want the file.",
            "acceptanceCriteria": [f"src/{story}.txt says good"],
            "priority": number,
            "passes": False,
            "notes": "",
            "verify": [f"grep -q good src/{story}.txt"],
        }
        for number, story in enumerate(stories, 1)
    ]
    top = {"feature": "feat", "branchName": "main", "description": "d", "createdAt": "2026-01-31T09:30:00Z"}
    return json.dumps(top | {"verifyCommands": ["sh check.sh"], "userStories": entries}, indent=2) + "\n"
