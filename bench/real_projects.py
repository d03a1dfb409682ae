"""Ralph on five small open-source projects that know nothing of it: real stories, hidden tests as the oracle of truth.

For each project: `ralph init` without input, a plan of real stories, `ralph run` at default settings. A scripted agent
plays recorded attempts, bad ones first: lies, broken tests, weakened tests, hard-coded results, partial work. Hidden
tests, which are never in the tree of the agent, and the project's own tests as they were, decide what is true."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from real_attempts import (  # type: ignore[import-not-found]
    GOOD,
    commit,
    environment,
    holds,
    is_fetched,
    names,
    ralph,
    script_of,
    spec_of,
    unpack,
)

from ralph.proof.dependencies import setup_command

EPILOG = """examples:
  python scripts/fetch_projects.py                            once: needs pip, npm and apt
  python bench/real_projects.py                               all five, with the scripted agent; some minutes
  python bench/real_projects.py inflection shortuuid          two of them
  python bench/real_projects.py --reviewer blind              what is left if the reviewer approves everything
  python bench/real_projects.py --agent claude --max-cost 5   a real agent with your login; this costs money
"""
Spec = dict[str, Any]


class Session(NamedTuple):
    """One session that worked on a story, and what became of it."""

    story: str
    mode: str
    attempt: str
    kind: str
    grade: str
    is_true: bool
    """By the oracle: what its attempt leaves."""


class Found(NamedTuple):
    project: str
    language: str
    stories: int
    checks: tuple[str, ...]
    is_right: bool
    """Init found the project's own test command."""
    setup: str
    place: str
    done: tuple[str, ...]
    false: tuple[str, ...]
    """Done, but the oracle says it is not."""
    sessions: tuple[Session, ...]
    grades: tuple[str, ...]
    """Of the stories that are done."""
    calls: int
    reviews: int
    ratio: float
    """Seconds of a proof, by the seconds of the plain checks in the workspace."""
    has_report: bool
    seconds: float
    problem: str = ""

    @property
    def true(self) -> int:
        return len(self.done) - len(self.false)

    @property
    def false_rejections(self) -> int:
        return sum(one.is_true and one.kind == "rejected" for one in self.sessions)

    @property
    def bad(self) -> list[Session]:
        return [one for one in self.sessions if not one.is_true]

    @property
    def refuted(self) -> int:
        """Bad attempts that the loop itself rejected."""
        return sum(one.kind != "accepted" for one in self.bad)

    @property
    def slipped(self) -> int:
        """Bad attempts that nothing stopped: the last work on a story that is done."""
        last = {one.story: one for one in self.sessions}
        return sum(not last[story].is_true for story in self.done if story in last)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help=f"of {', '.join(names())} (default: all)")
    parser.add_argument("--agent", default="", metavar="AGENT", help="a real agent, instead of the recorded attempts")
    parser.add_argument("--max-cost", type=float, default=5.0, metavar="USD", help="the most a real agent may spend")
    parser.add_argument("--reviewer", choices=("perfect", "blind"), default="perfect", help="(default: perfect)")
    parser.add_argument("--attempts", action="store_true", help="show each session and its verdict")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the projects here")
    args = parser.parse_args()
    if unknown := [name for name in args.projects if name not in names()]:
        parser.error(f"unknown project {unknown[0]}; one of {', '.join(names())}")
    chosen = args.projects or names()
    if missing := [name for name in chosen if not is_fetched(name)]:
        sys.exit(f"not fetched: {', '.join(missing)}; run scripts/fetch_projects.py")
    results = []
    for name in chosen:
        if not args.json:
            print(f"{name} …", file=sys.stderr, flush=True)
        results.append(run(name, agent=args.agent, max_cost=args.max_cost, reviewer=args.reviewer, keep=args.keep))
    if args.json:
        print(json.dumps([one._asdict() for one in results], indent=1))
    else:
        show(results, attempts=args.attempts)
    is_clean = all(one.has_report and not one.problem for one in results)
    return 0 if is_clean and (args.reviewer == "blind" or all(one.true == one.stories for one in results)) else 1


def run(
    name: str, *, agent: str = "", max_cost: float = 5.0, reviewer: str = "perfect", keep: Path | None = None
) -> Found:
    spec, folder = spec_of(name), Path(tempfile.mkdtemp(prefix=f"{name}-"))
    began = time.monotonic()
    try:
        return _run(spec, name, folder, agent, max_cost, reviewer)._replace(seconds=time.monotonic() - began)
    finally:
        if keep is not None:
            shutil.copytree(folder, keep / name, symlinks=True, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)  # Go's module cache is read-only
        shutil.rmtree(folder, ignore_errors=True)


def _run(spec: Spec, name: str, folder: Path, agent: str, max_cost: float, reviewer: str) -> Found:
    root = folder / name
    env = environment(folder, is_real=bool(agent))
    unpack(spec, folder, root, env)
    made = json.loads(ralph(root, env, "init", "--no-input", "--json"))
    checks = tuple(check["command"] for check in made["checks"])
    for story in spec["stories"]:
        ralph(root, env, "task", "add", story["title"], *(f"--criterion={one}" for one in story["criteria"]))
    listed = json.loads(ralph(root, env, "task", "list", "--json"))
    ids = [story["id"] for story in listed]
    commit(root, env, "Set up Ralph")
    arguments = ["--agent", agent, "--max-cost", str(max_cost)] if agent else ["--agent", "scripted"]
    if not agent:
        script = folder / "script.json"
        script.write_text(json.dumps(script_of(spec, ids, reviewer)))
        arguments += ["--agent-script", str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "ralph", "run", "--plain", *arguments],
        cwd=root, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (folder / "output").write_text(done.stdout + done.stderr)
    events = [
        {"t": record["t"], **record["event"]}
        for path in sorted((folder / "state").glob("*/runs/*/events.jsonl"))
        for record in map(json.loads, path.read_text().splitlines())
    ]
    plan = json.loads(ralph(root, env, "status", "--json"))
    finished = tuple(story["id"] for story in plan["stories"] if story["state"] == "done")
    truth = {
        story_id: holds(spec, story, root, folder, env) for story_id, story in zip(ids, spec["stories"], strict=True)
    }
    sessions = tuple(_sessions(events, truth if agent else None))
    ended = [event for event in events if event["type"] == "IterationEnded"]
    return Found(
        project=f"{spec['package']} {spec['version']}",
        language={"pypi": "Python", "npm": "JavaScript", "debian": "Go"}[spec["kind"]],
        stories=len(ids),
        checks=checks,
        is_right=any(spec["expect"] in check for check in checks),
        setup=setup_command([path.name for path in root.iterdir()], [".venv"] if (root / ".venv").is_dir() else []),
        place=_place(events),
        done=finished,
        false=tuple(story for story in finished if not truth[story]),
        sessions=sessions,
        grades=tuple(event["grade"] for event in ended if event["completes"]),
        calls=sum(event["type"] == "AgentStarted" for event in events),
        reviews=sum(event["type"] == "IterationStarted" and event["mode"] == "review" for event in events),
        ratio=_ratio(events),
        has_report=_has_report(spec, root, folder, env),
        seconds=0.0,
        problem=""
        if any(event["type"] == "RunEnded" for event in events)
        else (done.stderr.strip().splitlines() or ["the run did not end"])[-1],
    )


# What the run did


def _sessions(events: list[Spec], truth: dict[str, bool] | None) -> Iterator[Session]:
    """`truth`: of a real agent's work, only what its last session left is known."""
    attempts: dict[int, str] = {}
    for event in events:
        if event["type"] == "AgentSaid" and (match := re.match(r"attempt: (.+)", event["event"].get("text", ""))):
            attempts[event["iteration"]] = match[1]
        if event["type"] == "IterationEnded" and event["mode"] in ("implement", "fix"):
            name = attempts.get(event["iteration"], "real")
            is_true = name in GOOD if truth is None else truth[event["story"]]
            yield Session(event["story"], event["mode"], name, event["kind"], event["grade"], is_true)


def _place(events: list[Spec]) -> str:
    proofs = [event["evidence"]["proof"] for event in events if event["type"] == "Judged"]
    return ", ".join(sorted({proof["where"] for proof in proofs if proof}))


def _ratio(events: list[Spec]) -> float:
    """The median over the work that was accepted: from the end of the agent to the verdict, by the checks alone."""
    ended = {event["iteration"]: event["t"] for event in events if event["type"] == "AgentEnded"}
    ratios = []
    for event in events:
        if (
            event["type"] == "Judged"
            and event["evidence"]["mode"] != "review"
            and event["verdict"]["kind"] == "accepted"
        ):
            checks = sum(check["seconds"] for check in event["evidence"]["checks"])
            ratios += [(event["t"] - ended[event["iteration"]]) / checks] if checks else []
    return statistics.median(ratios) if ratios else 0.0


def _has_report(spec: Spec, root: Path, folder: Path, env: dict[str, str]) -> bool:
    page = folder / "report.html"
    ralph(root, env, "report", "--html", str(page))
    text = ralph(root, env, "report", "--markdown", "-")
    return page.stat().st_size > 5000 and all(story["title"] in text for story in spec["stories"])


_HEAD = (
    *("project", "language", "init", "proof in", "true", "false", "bad attempts rejected", "good rejected"),
    *("grades", "calls/true", "proof/checks", "report", "time"),
)


def show(results: Sequence[Found], *, attempts: bool) -> None:
    rows = [_HEAD, *map(_row, results)]
    wide = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for row in rows:
        print("  ".join(cell.ljust(wide[at]) for at, cell in enumerate(row)).rstrip())
    for one in results:
        if one.problem:
            print(f"{one.project}: {one.problem}")
        if attempts:
            print(f"{one.project}: checks {'; '.join(one.checks) or 'none'}; set-up {one.setup or 'none'}")
        for session in one.sessions if attempts else ():
            print(f"  {session.story} {session.mode:<9} {session.attempt:<10} {session.kind} {session.grade}".rstrip())


def _row(one: Found) -> tuple[str, ...]:
    reviewed = len(one.bad) - one.refuted - one.slipped
    return (
        one.project.removeprefix("golang-github-dustin-").replace("-dev", ""),
        one.language,
        "right" if one.is_right else "WRONG",
        one.place or "-",
        f"{one.true} of {one.stories}",
        str(len(one.false)),
        f"{one.refuted} by the loop, {reviewed} in review",
        str(one.false_rejections),
        ", ".join(f"{count} {grade}" for grade, count in Counter(one.grades).items()),
        f"{one.calls / one.true:.1f}" if one.true else "-",
        f"{one.ratio:.1f}",
        "yes" if one.has_report else "NO",
        f"{one.seconds:.0f} s",
    )


if __name__ == "__main__":
    sys.exit(main())
