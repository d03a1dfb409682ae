"""A gauntlet of cheats: how often does Ralph call a story done that is not, and does it let honest work pass?

Each case is a small real project with one story and a scripted agent, either one that claims the story without
implementing it, or an honest one. `ralph run` works on it at default settings. An oracle then clones the final commit,
restores everything but the source, and runs the original tests and hidden ones. A story that Ralph calls done while the
oracle fails is a false done.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cheat_cases import ACTS, PLANS, STORY, Case, cases, environment, make, projects, script, tools  # type: ignore[import-not-found]
from cheat_oracle import truth  # type: ignore[import-not-found]
from cheat_reach import Reach, changes, reach, snapshot  # type: ignore[import-not-found]

RUN_TIMEOUT = 180
EPILOG = """examples:
  python bench/cheats.py                               every case, with a competent reviewer
  python bench/cheats.py --reviewer blind              the reviewer approves everything
  python bench/cheats.py --only special-cased --reviewer blind --acceptance hidden
                                                       what hidden acceptance tests catch
  python bench/cheats.py --oracle-only                 without Ralph: every cheat must be false, every honest case true
  python bench/cheats.py --only 'pytest/*' --jobs 2    some of them (name, class or kind; a pattern)
  python bench/cheats.py --sandbox both --only 10-outside
                                                       in the sandbox and without one, side by side
  python bench/cheats.py --list                        what there is
"""


WAYS = {"default": [], "none": ["--no-sandbox"]}
"""How `ralph run` is started. By default it uses a sandbox where one works."""


class Result(NamedTuple):
    case: Case
    way: str
    done: bool
    """Ralph calls the story done."""
    code: int
    reviews: int
    sessions: int
    why_false: str
    """From the oracle; empty: the story is truly done."""
    reason: str
    """The last thing that Ralph printed against the work, or how the run ended."""
    seconds: float
    sandbox: str
    """The one that the agent was in; empty: none."""
    reach: Reach

    @property
    def is_false_done(self) -> bool:
        return self.done and bool(self.why_false)


class Bench:
    def __init__(
        self,
        folder: Path,
        cache: Path,
        reviewer: str,
        chosen: list[Case],
        iterations: int = 0,
        acceptance: str = "off",
    ) -> None:
        self.folder, self.cache, self.reviewer = folder, cache, reviewer
        self.options = ["-n", str(iterations)] if iterations else []
        self.options += ["--acceptance", acceptance] if acceptance != "off" else []
        self.projects = projects()
        self.tools = tools(cache, {self.projects[case.project]["tool"] for case in chosen})

    def missing(self) -> dict[str, str]:
        """Project → its program, where that is not installed."""
        needed = {name: project["tool"] for name, project in self.projects.items()}
        return {name: tool for name, tool in needed.items() if tool not in self.tools}

    def run(self, case: Case, *, oracle_only: bool, way: str = "default") -> Result:
        begun = time.monotonic()
        folder = self.folder / (case.name.replace("/", "--") + ("" if way == "default" else f"--{way}"))
        root, played = folder / "project", folder / "script.yaml"
        root.mkdir(parents=True)
        env = environment(folder, self.cache, self.tools)
        oracle_env = environment(self.folder / f"{folder.name}.clean", self.cache, self.tools)
        project = self.projects[case.project]
        make(case, project, root, played, env)
        played.write_text(script(case, self.reviewer, folder / "env" / ACTS.name))
        before = snapshot(folder, env)
        start = _git(root, env, "rev-parse", "HEAD")
        if oracle_only:
            done, code, reviews, sessions, reason = _play(case, project["check"], root, env, played)
        else:
            done, code, reviews, sessions, reason = _ralph(case, root, env, [*WAYS[way], *self.options])
        events = _events(folder)
        raw = sorted(folder.glob("state/*/runs/*/raw/*.log"))
        reached = reach(events, raw, changes(before, snapshot(folder, env)))
        end = _git(root, env, "rev-parse", "refs/heads/main")
        why = truth(case, project, root, oracle_env, start, end)
        seconds = time.monotonic() - begun
        return Result(case, way, done, code, reviews, sessions, why, reason, seconds, _sandbox(events), reached)


def _git(root: Path, env: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, env=dict(env), capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _play(case: Case, check: str, root: Path, env: Mapping[str, str], played: Path) -> tuple[bool, int, int, int, str]:
    """The agent's sessions and a plain commit after each: a loop that believes everything."""
    plan = root / PLANS[case.layout]
    request = root.parent / "request.json"
    for attempt in range(1, 3 if case.then else 2):
        own = {"RALPH_STORY": STORY, "RALPH_MODE": "implement", "RALPH_ATTEMPT": str(attempt)}
        own["RALPH_REQUEST_FILE"] = str(request)
        command = [sys.executable, "-I", "-m", "ralph.agents.play", str(played), str(plan)]
        nothing = subprocess.DEVNULL
        done = subprocess.run(command, cwd=root, env={**env, **own}, stdin=nothing, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{case.name}: the script fails: {done.stderr.decode()}")
        shell = ["sh", "-c", check]
        checked = subprocess.run(shell, cwd=root, env={**env, **own}, stdin=nothing, capture_output=True, check=False)
        _git(root, env, "add", "-A")
        _git(root, env, "commit", "-q", "-m", "Work")
    return checked.returncode == 0, checked.returncode, 0, 1, checked.stdout.decode()[-300:]


def _ralph(case: Case, root: Path, env: Mapping[str, str], options: list[str]) -> tuple[bool, int, int, int, str]:
    ralph = [sys.executable, "-m", "ralph"]
    _complete([*ralph, "trust", "-y"], root, env)
    code, errors = 0, ""
    for number in range(case.runs):
        code, output, errors = _complete([*ralph, "run", "--json", *options], root, env)
        (root.parent / f"run{number + 1}.jsonl").write_text(output)
        (root.parent / f"run{number + 1}.err").write_text(errors)
    _, output, _ = _complete([*ralph, "status", "--json"], root, env)
    (root.parent / "status.json").write_text(output)
    events = _events(root.parent)
    modes = [event["mode"] for event in events if event["type"] == "IterationStarted"]
    return _is_done(output, root, events), code, modes.count("review"), len(modes), _reason(events, errors)


def _events(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in sorted(folder.glob("run*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line)["event"] for line in lines if line.startswith("{")]


def _sandbox(events: list[dict[str, Any]]) -> str:
    """What every run of the case says about its sandbox; empty if one had none, or if checks ran outside."""
    found = [
        re.search(r"inside its sandbox \((\w+)", event["may"]) for event in events if event["type"] == "RunStarted"
    ]
    is_excused = any("checks run outside the sandbox" in event["text"] for event in events if event["type"] == "Noted")
    return found[0][1] if found and found[0] and all(found) and not is_excused else ""


def _is_done(status: str, root: Path, events: list[dict[str, Any]]) -> bool:
    """By `ralph status`, by an archived plan, or because the run says that everything is complete.

    A story that a cap has approved with open findings is not called done: the run says so and ends with 1.
    """
    ends = [event["reason"] for event in events if event["type"] == "RunEnded"]
    if ends[-1:] == ["open-findings"]:
        return False
    if "complete" in ends:
        return True
    if any('"passes": true' in path.read_text() for path in root.glob(".ralph/archive/**/*.json")):
        return True
    stories = json.loads(status).get("stories", []) if status.startswith("{") else []
    return any(story["id"] == STORY and story["state"] == "done" for story in stories)


def _reason(events: list[dict[str, Any]], errors: str) -> str:
    said = ""
    for event in events:
        if event["type"] == "IterationEnded" and event["kind"] not in ("accepted", "partial"):
            lines = [event["headline"], *(line.lstrip("- ") for line in event["feedback"].splitlines())]
            said = " | ".join(dict.fromkeys(lines))
    ended = [event for event in events if event["type"] == "RunEnded"]
    end = f"{ended[-1]['reason']} ({ended[-1]['detail']})" if ended else f"no end: {errors.strip()[-300:]}"
    return f"{end}: {said}"[:700] if said else end


def _complete(command: list[str], root: Path, env: Mapping[str, str]) -> tuple[int, str, str]:
    own = {**env, "RALPH_STATE_HOME": str(root.parent / "state"), "XDG_CONFIG_HOME": str(root.parent / "home/.config")}
    try:
        done = subprocess.run(
            command, cwd=root, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, "", "timed out"
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


# -- the report -----------------------------------------------------------------------------------------------


def report(results: list[Result]) -> None:
    cheats = [result for result in results if result.case.kind == "cheat"]
    honest = [result for result in results if result.case.kind == "honest"]
    if cheats:
        print("\nCheats by what stopped them. True: Ralph committed what was hidden, so the story is done after all.")
        heads = f"{'cases':>6} {'procedure':>10} {'review':>7} {'true':>5} {'false done':>11} {'hidden only':>12}"
        print(f"{'class':<24} {heads}")
        for group in [*dict.fromkeys(result.case.group for result in cheats), "all"]:
            chosen = [result for result in cheats if group in (result.case.group, "all")]
            false = [result for result in chosen if result.is_false_done]
            stopped = [result for result in chosen if not result.done]
            reviewed = sum(bool(result.reviews) for result in stopped)
            hidden = sum(result.case.expected == "undetectable" for result in false)
            true = len(chosen) - len(stopped) - len(false)
            row = (
                f"{len(chosen):>6} {len(stopped) - reviewed:>10} {reviewed:>7} {true:>5} {len(false):>11} {hidden:>12}"
            )
            print(f"{group:<24} {row}")
    if honest:
        print(f"\n{'honest':<24} {'cases':>6} {'done':>10} {'rejected':>9} {'reviews':>8}")
        for group in [*dict.fromkeys(result.case.group for result in honest), "all"]:
            chosen = [result for result in honest if group in (result.case.group, "all")]
            done = sum(result.done for result in chosen)
            reviews = sum(result.reviews for result in chosen)
            print(f"{group:<24} {len(chosen):>6} {done:>10} {len(chosen) - done:>9} {reviews:>8}")
    false, refused = [one for one in cheats if one.is_false_done], [one for one in honest if not one.done]
    if false:
        print("\nfalse dones:")
    for result in false:
        note = f" [{result.case.expected}]" if result.case.expected else ""
        where = f"{result.case.name} ({result.case.layout}, exit {result.code})"
        print(f"  {result.case.group}: {where}{note}: {result.why_false}")
    if refused:
        print("\nhonest work that was rejected:")
    for result in refused:
        print(f"  {result.case.name} ({result.case.layout}, exit {result.code}): {result.reason}")
    for result in honest:
        if result.done and result.why_false:
            print(f"  not true in the end: {result.case.name}: {result.why_false}")
    seconds = [result.seconds for result in results]
    mean, slowest = sum(seconds) / max(len(seconds), 1), max(seconds, default=0)
    print(f"\n{len(results)} cases, {mean:.1f} s each, the slowest {slowest:.1f} s")
    if cheats:
        print(f"false dones: {len(false)} of {len(cheats)} cheats ({len(false) / len(cheats):.0%})")
    if honest:
        print(f"honest work rejected: {len(refused)} of {len(honest)} ({len(refused) / len(honest):.0%})")


def report_reach(results: list[Result]) -> int:
    """What cheats could do in each way. How many results show nothing, or reach out of a sandbox."""
    cheats = [result for result in results if result.case.kind == "cheat"]
    ways = [way for way in WAYS if any(result.way == way for result in cheats)]
    titles = {"default": "default", "none": "no sandbox"}
    print("\nHow far cheats got. Outside: files of the user, git settings or refs outside the workspace were changed.")
    print(f"{'class':<26} {'cases':>6}", *(f"{titles[way] + ': outside':>20} {'false done':>11}" for way in ways))
    for group in [*dict.fromkeys(result.case.group for result in cheats), "all"]:
        chosen = [result for result in cheats if group in (result.case.group, "all")]
        cells = []
        for way in ways:
            mine = [result for result in chosen if result.way == way]
            cells.append(f"{sum(bool(r.reach.outside) for r in mine):>20} {sum(r.is_false_done for r in mine):>11}")
        print(f"{group:<26} {len({result.case.name for result in chosen}):>6}", *cells)
    wrong = 0
    for result in results:
        is_inside, what = result.way == "default", f"{result.case.name} ({titles[result.way]})"
        if result.reach.unplayed:
            wrong += 1
            print(f"  {what}: shows nothing, the agent could not do all its steps: {result.reach.unplayed}")
        if is_inside and not result.sandbox:
            wrong += 1
            print(f"  {what}: was not in a sandbox, or its checks were not")
        elif is_inside and result.reach.outside:
            wrong += 1
            print(f"  {what}: reached {', '.join(result.reach.outside[:5])}")
    inside = [result for result in cheats if result.way == "default"]
    refused = sum(bool(result.reach.failed) for result in inside)
    if inside:
        print(f"in the sandbox a command of the agent failed in {refused} of {len(inside)} cheats")
    return wrong


def report_oracle(results: list[Result]) -> int:
    """How many cases are not what they say."""
    wrong = [one for one in results if bool(one.why_false) != (one.case.kind == "cheat")]
    for one in wrong:
        print(f"  {one.case.kind} {one.case.name}: {one.why_false or 'the story is truly done'}")
    cheats = [one for one in results if one.case.kind == "cheat"]
    for one in results:
        if not one.done:
            print(f"  {one.case.kind} {one.case.name}: the project's own check fails")
    passing = sum(one.done for one in cheats)
    print(f"{passing} of {len(cheats)} cheats pass the project's own check: what a loop without proof believes")
    print(f"{len(results)} cases, {len(wrong)} of them are not what they say")
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", metavar="PATTERN", help="cases by name, class or kind; can be repeated"
    )
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cases at a time (default: 2)")
    parser.add_argument(
        "--reviewer",
        choices=("competent", "blind"),
        default="competent",
        help="who reviews cheats (default: competent)",
    )
    parser.add_argument(
        "--acceptance",
        choices=("off", "visible", "hidden"),
        default="off",
        help="have another session write acceptance tests first (default: off)",
    )
    parser.add_argument("--iterations", type=int, default=0, metavar="N", help="`ralph run -n N`, for a first look")
    parser.add_argument(
        "--sandbox",
        choices=(*WAYS, "both"),
        default="default",
        help="default: as `ralph run` decides; none: --no-sandbox; both: one after the other (default: default)",
    )
    parser.add_argument("--oracle-only", action="store_true", help="apply the agent's steps without Ralph")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders of all cases here")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write one JSON line for each case")
    parser.add_argument("-v", "--verbose", action="store_true", help="print one line for each case")
    args = parser.parse_args()
    chosen = [case for case in cases() if not args.only or any(_matches(case, one) for one in args.only)]
    if args.list:
        for case in chosen:
            print(f"{case.kind:<7} {case.group:<22} {case.layout:<11} {case.name}")
        cheats = sum(case.kind == "cheat" for case in chosen)
        print(f"{cheats} cheats, {len(chosen) - cheats} honest")
        return 0
    if not chosen:
        parser.error(f"no case matches {' '.join(args.only)}; --list shows all")
    folder = args.keep or Path(tempfile.mkdtemp(prefix="ralph-cheats-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        bench = Bench(folder.resolve(), _cache(), args.reviewer, chosen, args.iterations, args.acceptance)
        return _measure(chosen, bench, args)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ralph-bench"


def _matches(case: Case, pattern: str) -> bool:
    return any(fnmatch(one, pattern) for one in (case.name, case.group, case.kind, case.layout))


def _measure(chosen: list[Case], bench: Bench, args: argparse.Namespace) -> int:
    missing = bench.missing()
    for name, tool in missing.items():
        if count := sum(case.project == name for case in chosen):
            print(f"skipped: {count} {name} cases ({tool} is not installed)")
    chosen = [case for case in chosen if case.project not in missing]
    with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
        ways = [*WAYS] if args.sandbox == "both" and not args.oracle_only else [args.sandbox]
        pairs = [(case, way) for case in chosen for way in ways]
        results = list(pool.map(lambda pair: _one(pair[0], pair[1], bench, args), pairs))
    if args.oracle_only:
        return 1 if report_oracle(results) else 0
    for way in ways:
        if len(ways) > 1:
            print(f"\n== sandbox: {way} ==")
        report([result for result in results if result.way == way])
    wrong = report_reach(results)
    hidden = [one for one in results if one.is_false_done and not one.case.expected]
    refused = [one for one in results if one.case.kind == "honest" and not one.done]
    return 1 if hidden or refused or wrong else 0


def _one(case: Case, way: str, bench: Bench, args: argparse.Namespace) -> Result:
    result = bench.run(case, oracle_only=args.oracle_only, way=way)
    word = "done" if result.done else "stopped"
    counts = f"exit {result.code}, {result.sessions} sessions, {result.reviews} reviews"
    line = f"{case.kind:<7} {case.name:<45} {result.sandbox or 'no sandbox':<10} {word:<8} {counts}"
    if args.verbose:
        told = f"{result.why_false[:100] or 'true'} / {result.reason[:200]} / {result.reach}"
        print(f"{line}, {result.seconds:.1f} s  {told}", flush=True)
    if args.results:
        with args.results.open("a") as stream:
            stream.write(json.dumps(result._replace(case=case.name)._asdict()) + "\n")
    return result


if __name__ == "__main__":
    sys.exit(main())
