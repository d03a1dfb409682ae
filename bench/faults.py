"""Random faults: is anything lost, does anything hang, and does the run still end as an undisturbed one?

Each seed draws a layout and some disturbances: the loop is killed, or its disk fills up or fails, at random points
(tests/support/crash_driver.py); a person writes files and commits in the same tree meanwhile; the agent moves and
deletes branches, tags and the stash, and removes what is unreachable. Ralph is started again until every story is done.
Then everything a person had or made must still exist, and the stories' files must be those of an undisturbed run."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.loops import CONFIG, LoopProject, run_driven, run_ralph, whole

EPILOG = """examples:
  python bench/faults.py                    20 runs
  python bench/faults.py --runs 500 --jobs 2 --results faults.jsonl
  python bench/faults.py --seed 17 --keep DIR     one of them again, and keep its folder
"""
LAYOUTS = ("tasks.json", "plan.md", "feature", "spec.md", "steps")
HOWS = ("kill", "kill", "ENOSPC", "EIO", "full")
SETTINGS = f"{CONFIG}proof: {{minimum: unproven}}\nsandbox: none\n"
"""No check is about one of these stories, and the person works in the same tree as the agent."""
MOST_STARTS = 8
"""A run that is not complete after so many undisturbed starts does not get better."""
DESTROYS = (
    "git branch -f experiment HEAD~0 && git branch -D elsewhere",
    "git tag -d v0",
    "git stash drop -q",
    "git branch -m elsewhere main-2",
    "git update-ref -d refs/heads/elsewhere",
    "git for-each-ref --format='delete %(refname)' refs/ralph | git update-ref --stdin",
    CLEANS := "git reset -q --hard HEAD && git clean -fdxq -e .ralph -e src -e person",  # not what was just written
)
MOST_WRITES = 10
"""By a person, who then lets the run start with a clean tree."""
FORGETS = "git reflog expire --expire=now --all && git gc -q --prune=now"
LOST = ("commit", "file", "ref", "hang")


class Draw(NamedTuple):
    """What happens in one run."""

    seed: int
    layout: str
    faults: tuple[tuple[str, float], ...]
    """How, and where, as a part of the points of an undisturbed run."""
    person: bool
    destroys: tuple[str, ...]


class Problem(NamedTuple):
    kind: str
    """`commit`, `file`, `ref`, `hang`, or `end`: not the result of an undisturbed run."""
    text: str


def draw(seed: int) -> Draw:
    chance = random.Random(seed)
    destroys = tuple(chance.sample(DESTROYS, chance.randint(1, 2))) if chance.random() < 0.4 else ()
    if destroys and chance.random() < 0.5:
        destroys += (FORGETS,)
    faults = tuple((chance.choice(HOWS), chance.random()) for _ in range(chance.randint(0, 3)))
    return Draw(seed, chance.choice(LAYOUTS), faults, chance.random() < 0.5, destroys)


class Person:
    """Writes files and commits them while the loop works, and remembers all of it."""

    def __init__(self, project: LoopProject, chance: random.Random) -> None:
        self._project = project
        self._chance = chance
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.files: dict[str, str] = {}
        self.commits: list[str] = []

    def __enter__(self) -> Person:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while len(self.files) < MOST_WRITES and not self._stop.wait(self._chance.uniform(0.2, 2)):
            name, text = f"person/{len(self.files)}.txt", f"{self._chance.random()}\n"
            self._project.write(name, text)
            self.files[name] = text
            if self._chance.random() < 0.5:
                self._commit(name)

    def _commit(self, name: str) -> None:
        """Only the new file. Where git refuses, because the loop holds a lock, the file is left uncommitted."""
        project = self._project
        commands = (["add", "--", name], ["commit", "-q", "--no-verify", "-m", f"person: {name}", "--", name])
        for command in commands:
            done = subprocess.run(
                ["git", *command], cwd=project.root, env=project.env, capture_output=True, check=False
            )
            if done.returncode:
                return
        found = project.git("log", "--all", "-1", "--format=%H", f"--grep=^person: {name}$")
        self.commits += [found] if found else []


class Reference(NamedTuple):
    template: LoopProject
    points: int
    files: dict[str, str]
    """What the stories make, in an undisturbed run."""
    theirs: dict[str, str]


def make_reference(folder: Path, layout: str) -> Reference:
    template = LoopProject.make(folder / "template", whole(layout)._replace(config=SETTINGS))
    theirs = template.theirs()
    quiet = template.copy(folder / "undisturbed")
    done = run_driven(quiet, "kill", 0, folder / "points")
    if done.code:
        sys.exit(f"the undisturbed run failed: {done.out}{done.err}")
    return Reference(template, len((folder / "points").read_text().splitlines()), made_by_stories(quiet), theirs)


def made_by_stories(project: LoopProject) -> dict[str, str]:
    return {str(path.relative_to(project.root)): path.read_text() for path in sorted(project.root.glob("src/*"))}


def disturb(reference: Reference, drawn: Draw, folder: Path) -> Iterator[Problem]:
    project = reference.template.copy(folder)
    chance = random.Random(f"{drawn.seed} person")
    if drawn.destroys:
        add_destruction(project, drawn.destroys)
    person = Person(project, chance)
    try:
        if drawn.person:
            with person:
                code = play(project, reference, drawn)
        else:
            code = play(project, reference, drawn)
    except subprocess.TimeoutExpired as error:
        yield Problem("hang", f"{error.cmd[2:]} did not end within {error.timeout:.0f} s")
        return
    if code:
        yield Problem("end", f"the last run ended with {code}")
    elif (made := made_by_stories(project)) != reference.files:
        yield Problem("end", f"the stories made {made}")
    yield from lost(project, reference, drawn, person)


def add_destruction(project: LoopProject, commands: tuple[str, ...]) -> None:
    """The first session does it before it claims its story."""
    script = project.root / ".ralph/script.yaml"
    lines = "".join(f"        - run: {json.dumps(command + ' || true')}\n" for command in commands)
    script.write_text(script.read_text().replace("        - claim: done\n", f"{lines}        - claim: done\n", 1))
    project.git("add", "-f", ".ralph/script.yaml")
    project.git("commit", "-q", "-m", "script", "--", ".ralph/script.yaml")


def play(project: LoopProject, reference: Reference, drawn: Draw) -> int:
    """The disturbed runs, then undisturbed ones until the plan is complete. Returns the last exit code."""
    for number, (how, at) in enumerate(drawn.faults):
        point = 1 + int(at * reference.points)
        done = run_driven(project, how, point, project.folder / f"points-{number}")
        if done.code == 0:
            return 0
        tidy(project, done.err)
    code = 1
    for number in range(MOST_STARTS):
        done = run_ralph(project)
        (project.folder / f"output-{number}").write_text(done.out + done.err)
        code = done.code
        if code == 0:
            break
        tidy(project, done.err)
        commit_the_rest(project)
    return code


def tidy(project: LoopProject, said: str) -> None:
    """Where the run could not know who committed, it saved and left everything, and asked a person to look at it."""
    if "the agent's work is saved in refs/ralph/rescue/" in said:
        project.git("clean", "-fdq", "src", check=False)


def commit_the_rest(project: LoopProject) -> None:
    """A run does not start in a dirty tree."""
    if (project.root / "person").is_dir():
        project.git("add", "--", "person", check=False)
        project.git("commit", "-q", "--no-verify", "-m", "person: the rest", "--", "person", check=False)


def lost(project: LoopProject, reference: Reference, drawn: Draw, person: Person) -> Iterator[Problem]:
    for commit in person.commits:
        if not project.git("for-each-ref", f"--contains={commit}", check=False):
            yield Problem("commit", f"no ref has the person's commit {commit}")
    listed = project.git("rev-list", "--objects", "--all", "--", "person", check=False).splitlines()
    kept = {item.partition(" ")[0] for item in listed}
    for name, text in person.files.items():
        on_disk = project.root / name
        if on_disk.is_file() and on_disk.read_text() == text:
            continue
        if blob_name(project, text) not in kept:
            yield Problem("file", f"{name} of the person is neither on disk nor in a ref")
    now = project.theirs()
    cleans = CLEANS in drawn.destroys
    excused = {*(("staged", "edited") if drawn.person or cleans else ()), *(("build/out.bin",) if cleans else ())}
    for name, was in reference.theirs.items():
        if name == "refs":
            missing = set(was.splitlines()) - set(now[name].splitlines())
            yield from (Problem("ref", f"{ref} is gone or moved") for ref in sorted(missing))
        elif now.get(name) != was and name not in excused and not is_kept_aside(project, was):
            yield Problem("file", f"{name} was {was[:200]!r} and is {now.get(name, '')[:200]!r}")
    if problems := [line for line in project.health() if line.startswith("fsck")]:
        yield Problem("commit", problems[0])


def is_kept_aside(project: LoopProject, text: str) -> bool:
    """Whether the state folder or a ref has a copy of an ignored file that accepted work deleted."""
    data = text.encode()
    if any(path.is_file() and path.read_bytes() == data for path in project.state.rglob("*")):
        return True
    return blob_name(project, text) in project.git("rev-list", "--objects", "--all", check=False)


def blob_name(project: LoopProject, text: str) -> str:
    command = ["git", "hash-object", "--stdin"]
    done = subprocess.run(command, cwd=project.root, input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode().strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs (default: 20; the full figure: 500)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the first seed (default: 1)")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders of runs with problems here")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write one JSON line for each run")
    args = parser.parse_args()
    seeds = [args.seed] if args.seed is not None else list(range(args.first, args.first + args.runs))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="ralph-faults-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        wanted = sorted({draw(seed).layout for seed in seeds})
        references = {layout: make_reference(folder / layout, layout) for layout in wanted}

        def one(seed: int) -> list[Problem]:
            drawn = draw(seed)
            place = folder / f"run-{seed}"
            problems = list(disturb(references[drawn.layout], drawn, place))
            show(drawn, problems, args.results)
            if problems and args.keep:
                shutil.copytree(place, args.keep / f"run-{seed}", symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            return problems

        with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
            found = [problem for problems in pool.map(one, seeds) for problem in problems]
    counted = Counter(problem.kind for problem in found)
    print(f"\n{len(seeds)} runs: " + ", ".join(f"{counted[kind]} {kind}s lost" for kind in LOST[:3]), end="")
    print(f", {counted['hang']} hangs, {counted['end']} other ends")
    return 1 if found else 0


def show(drawn: Draw, problems: list[Problem], results: Path | None) -> None:
    faults = [f"{how}@{at:.2f}" for how, at in drawn.faults]
    also = [*(["person"] if drawn.person else []), *(["destroys"] if drawn.destroys else [])]
    told = "; ".join(f"{problem.kind}: {problem.text}" for problem in problems) or "as undisturbed"
    print(f"{drawn.seed:>4} {drawn.layout:<10} {' '.join([*faults, *also]) or 'nothing':<40} {told}", flush=True)
    if results:
        with results.open("a") as stream:
            stream.write(json.dumps({"seed": drawn.seed, "drawn": drawn, "problems": problems}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
