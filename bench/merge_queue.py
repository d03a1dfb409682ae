"""How much faster several workers and the merge queue are than one worker, and where they stop being faster.

A simulation with a clock of its own: the scheduler (`engine/schedule.py`) and the queue (`engine/queue.py`) are the
real ones, what takes time is drawn from a distribution. `--git` measures the merges themselves, in real repositories.

Model: a worker works on a story (log-normal, `--agent` is the median) and runs the checks. If they pass, the work is
queued. A proof of merged work takes a free worker for as long as the checks take, before any new story starts. Landing
takes a second of the driver, one after the other. A share of the stories, the collision rate, has a partner among the
stories just before it in the plan. If neither was made with the other in its tree, they collide: half of the pairs
conflict in text, the other half is red only together. A returned story takes another session and other checks.
"""

from __future__ import annotations

import argparse
import heapq
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import msgspec

from ralph.core.events import Running
from ralph.core.history import History
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.rules import Limits
from ralph.engine import queue as merge_queue
from ralph.engine.queue import Build, Entry, Queue
from ralph.engine.schedule import schedule
from ralph.host.git.merging import commit_object, merge_onto
from ralph.host.git.repo import identify

MINUTE = 60.0
HOUR = 60 * MINUTE
_SPREAD = 0.5
"""Of the logarithm of the time of a session: one in six takes more than 1.6 times the median."""
_LANDING = 1.0
_COLUMNS = ("batch", "speculate", "hours", "× one worker", "queue: most", "mean", "wait, min", "proofs", "in vain",
            "returned", "workers: sessions", "proofs")  # fmt: skip
_LIMITS = Limits(max_iterations=0, max_attempts=0, no_progress=0, same_error=0)
_Value = TypeVar("_Value")


class Setting(NamedTuple):
    stories: int = 100
    workers: int = 8
    agent: float = 5 * MINUTE
    check: float = 30.0
    collisions: float = 0.0
    batch: int = 1
    speculate: int = 3
    returns: int = 2
    foreseen: float = 0.0
    """The share of the collisions that the areas of the stories tell the scheduler."""
    seed: int = 1


class Figures(NamedTuple):
    hours: float
    serial_hours: float
    deepest: int
    depth: float
    """The mean number of entries in the queue."""
    waited: float
    """The median time of an entry in the queue, in minutes."""
    proofs: int
    wasted: int
    """Proofs that failed or were stopped."""
    returned: int
    working: float
    """The share of the workers' time in sessions and their own checks."""
    proving: float
    driver: float
    """Seconds that the real scheduler and queue took in all."""

    @property
    def ratio(self) -> float:
        return self.serial_hours / self.hours


class Simulation:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        random = Random(setting.seed)
        self.sessions = [setting.agent * math.exp(random.gauss(0, _SPREAD)) for _ in range(setting.stories)]
        self.serial = sum(self.sessions) + setting.stories * setting.check
        self.random = random
        self.partners: dict[int, list[tuple[int, str]]] = {}
        areas: dict[str, tuple[str, ...]] = {}
        for number in range(1, setting.stories):
            if random.random() < setting.collisions:
                other = random.randrange(max(0, number - setting.workers), number)
                kind = random.choice(["text", "red"])
                self.partners.setdefault(number, []).append((other, kind))
                self.partners.setdefault(other, []).append((number, kind))
                if random.random() < setting.foreseen:
                    file = f"src/shared_{number}.py"
                    for each in (number, other):
                        areas[f"S-{each}"] = (*areas.get(f"S-{each}", ()), file)
        self.areas = areas
        self.plan = Plan(
            name="bench",
            stories=tuple(Story(id=f"S-{n}", title=f"Story {n}", priority=n) for n in range(setting.stories)),
        )
        self.history = History()
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.sequence = 0
        self.free = setting.workers
        self.iteration = 0
        self.working: dict[int, int] = {}
        """Iteration → number of the story."""
        self.bases: dict[int, int] = {}
        """Number of the story → how many stories had landed when its session started."""
        self.landed_as: dict[int, int] = {}
        self.queue = merge_queue.moved(Queue(), "0")
        self.story_of: dict[int, int] = {}
        self.proving: dict[str, float] = {}
        self.content: dict[str, tuple[int, ...]] = {}
        self.queued_at: dict[int, float] = {}
        self.is_landing = False
        self.agent_time = self.proof_time = self.depth_time = self.driver = 0.0
        self.deepest = self.proofs = self.wasted = self.returned = 0
        self.waits: list[float] = []

    def run(self) -> Figures:
        self._act()
        while self.events and len(self.landed_as) < self.setting.stories:
            then, _, happen = heapq.heappop(self.events)
            self.depth_time += (then - self.now) * len(self.queue.entries)
            self.now = then
            happen()
            self._act()
        assert len(self.landed_as) == self.setting.stories, "the simulation ended with stories left"
        capacity = self.now * self.setting.workers
        return Figures(
            hours=self.now / HOUR,
            serial_hours=self.serial / HOUR,
            deepest=self.deepest,
            depth=self.depth_time / self.now,
            waited=statistics.median(self.waits) / MINUTE,
            proofs=self.proofs,
            wasted=self.wasted,
            returned=self.returned,
            working=self.agent_time / capacity,
            proving=self.proof_time / capacity,
            driver=self.driver,
        )

    def _timed(self, work: Callable[[], _Value]) -> _Value:
        begun = time.perf_counter()
        result = work()
        self.driver += time.perf_counter() - begun
        return result

    def _later(self, seconds: float, happen: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (self.now + seconds, self.sequence, happen))

    @property
    def tip(self) -> str:
        return str(len(self.landed_as))

    def _act(self) -> None:
        self._return()
        self._land()
        self._stop_proofs()
        while self._prove():
            self._return()
        self._start()
        self.deepest = max(self.deepest, len(self.queue.entries))

    def _return(self) -> None:
        for entry in merge_queue.failed(self.queue):
            self.queue = merge_queue.removed(self.queue, entry.iteration)
            self.returned += 1
            times = self.history.returned.get(entry.story, 0) + 1
            returned = {**self.history.returned, entry.story: times}
            self.history = msgspec.structs.replace(self.history, returned=returned)
            del self.queued_at[entry.iteration]

    def _land(self) -> None:
        ready = merge_queue.ready(self.queue, self.tip)
        if ready and not self.is_landing:
            self.is_landing = True
            self._later(_LANDING, lambda: self._landed(ready[0]))

    def _landed(self, entry: Entry) -> None:
        self.is_landing = False
        number = self.story_of[entry.iteration]
        self.landed_as[number] = len(self.landed_as) + 1
        self.queue = merge_queue.landed(self.queue, entry.iteration, self.tip)
        self.waits.append(self.now - self.queued_at.pop(entry.iteration))
        stories = list(self.plan.stories)
        stories[number] = msgspec.structs.replace(stories[number], state=State.DONE)
        self.plan = self.plan.with_stories(stories)

    def _stop_proofs(self) -> None:
        for key in merge_queue.obsolete(self.queue, list(self.proving)):
            self.queue = merge_queue.stopped(self.queue, key)
            self._ended(key)
            self.wasted += 1

    def _prove(self) -> bool:
        """True: something clashed, so that something else may be wanted now."""
        setting = self.setting
        if not self.free:
            return False
        builds = self._timed(
            lambda: merge_queue.wanted(self.queue, self.tip, batch=setting.batch, speculate=setting.speculate)
        )
        return not all(self._merge(build) for build in builds[: self.free])

    def _merge(self, build: Build) -> bool:
        content = self.content[build.onto_key] if build.onto_key else ()
        for entry in build.entries:
            number = self.story_of[entry.iteration]
            if self._collides(number, content, "text"):
                self.queue = merge_queue.clashed(self.queue, build.key, entry.iteration)
                return False
            content = (*content, number)
        self.queue = merge_queue.building(self.queue, build.key, build.key)
        self.content[build.key] = content
        self.proving[build.key] = self.now
        self.proofs += 1
        self.free -= 1
        begun = self.now
        self._later(self.setting.check, lambda: self._proved(build.key, begun))
        return True

    def _proved(self, key: str, begun: float) -> None:
        if self.proving.get(key) != begun:  # it was stopped
            return
        self._ended(key)
        passed = not any(self._collides(number, self.content[key], "red") for number in self.content[key])
        self.wasted += not passed
        self.queue = merge_queue.proved(self.queue, key, passed)

    def _ended(self, key: str) -> None:
        self.proof_time += self.now - self.proving.pop(key)
        self.free += 1

    def _collides(self, number: int, content: Sequence[int], kind: str) -> bool:
        """With one that has landed, or comes before it in the content, and was made without it."""
        for other, how in self.partners.get(number, ()):
            landed = self.landed_as.get(other, 0)
            if how == kind and (landed or other in content):
                is_known = 0 < landed <= self.bases[number] or 0 < self.landed_as.get(number, 0) <= self.bases[other]
                if not is_known:
                    return True
        return False

    def _start(self) -> None:
        if not self.free:
            return
        running = [Running(i, f"S-{n}", Mode.IMPLEMENT, has_started=True) for i, n in self.working.items()]
        running += [
            Running(entry.iteration, entry.story, Mode.IMPLEMENT, has_started=True, is_queued=True)
            for entry in self.queue.entries
        ]
        chosen = self._timed(
            lambda: schedule(
                self.plan,
                self.history,
                _LIMITS,
                self.now,
                running=running,
                free=self.free,
                areas=self.areas,
                returns=self.setting.returns,
            )
        )
        for work in chosen.start:
            self.iteration += 1
            number = int(work.story.removeprefix("S-"))
            self.working[self.iteration] = number
            self.story_of[self.iteration] = number
            self.bases[number] = len(self.landed_as)
            self.free -= 1
            times = self.history.returned.get(work.story, 0)
            session = self.sessions[number] if not times else self._another_session()
            seconds = session + self.setting.check
            self.agent_time += seconds
            self._later(seconds, lambda iteration=self.iteration: self._accepted(iteration))  # type: ignore[misc]

    def _another_session(self) -> float:
        return self.setting.agent * math.exp(self.random.gauss(0, _SPREAD))

    def _accepted(self, iteration: int) -> None:
        number = self.working.pop(iteration)
        self.free += 1
        self.queued_at[iteration] = self.now
        self.queue = merge_queue.enqueue(self.queue, Entry(iteration, f"S-{number}", f"c{iteration}", "base"))


def mean(settings: Sequence[Setting]) -> Figures:
    every = [Simulation(setting).run() for setting in settings]
    means = [statistics.mean(values) for values in zip(*every, strict=True)]
    return Figures(*means)


def throughput(seeds: int, agent: float, stories: int) -> None:
    ways = {"one by one": (1, 0), "speculate 3": (1, 3), "batch 4 + speculate 3": (4, 3)}
    print(
        f"Speed compared with one worker without a queue (simulated; {stories} stories, sessions of {agent / MINUTE:g}"
        f" min median, mean of {seeds} seeds)\n"
    )
    print("| checks | collisions | " + " | ".join(f"{n} workers, {way}" for n in (4, 8) for way in ways) + " |")
    print("|---|---|" + "---|" * (2 * len(ways)))
    for check, label in ((1.0, "1 s"), (30.0, "30 s"), (5 * MINUTE, "5 min")):
        for rate in (0.0, 0.1, 0.3):
            cells = []
            for workers in (4, 8):
                for batch, speculate in ways.values():
                    base = Setting(stories, workers, agent, check, rate, batch, speculate)
                    cells.append(f"{mean([base._replace(seed=seed) for seed in range(seeds)]).ratio:.1f}")
            print(f"| {label} | {rate:.0%} | {' | '.join(cells)} |", flush=True)


def scale(seeds: int) -> None:
    base = Setting(stories=1000, workers=200, agent=20 * MINUTE, check=5 * MINUTE)
    ways = ((1, 0), (1, 3), (1, 10), (1, 40), (8, 0), (8, 3), (8, 10))
    print("1,000 stories, 200 workers, sessions of 20 min median, checks of 5 min (simulated)\n")
    for rate, foreseen in ((0.0, 0.0), (0.1, 0.0), (0.1, 0.8)):
        areas = f", {foreseen:.0%} of them avoided by the scheduler" if foreseen else ""
        print(f"Collisions: {rate:.0%}{areas}\n")
        print("| " + " | ".join(_COLUMNS) + " |\n" + "|---" * len(_COLUMNS) + "|")
        driver = []
        for batch, speculate in ways:
            setting = base._replace(collisions=rate, foreseen=foreseen, batch=batch, speculate=speculate)
            found = mean([setting._replace(seed=seed) for seed in range(seeds)])
            driver.append(found.driver)
            print(
                f"| {batch} | {speculate} | {found.hours:.1f} | {found.ratio:.0f} | {found.deepest:.0f} |"
                f" {found.depth:.0f} | {found.waited:.0f} | {found.proofs:.0f} | {found.wasted:.0f} |"
                f" {found.returned:.0f} | {found.working:.0%} | {found.proving:.0%} |",
                flush=True,
            )
        print(f"\nOne worker: {found.serial_hours:.0f} h. The scheduler and the queue took at most {max(driver):.0f} s"
              " of CPU in a run.\n")  # fmt: skip


def merges(sizes: Sequence[int], count: int) -> None:
    print(f"{count} candidates of 3 files each, merged one after the other (real git, ms)\n")
    print("| files | merge_onto: median | slowest | with a conflict | commit | `git version` |")
    print("|---|---|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
            root = Path(folder)
            base, candidates = _repository(root, size, count)
            repo = identify(root)
            clean: list[float] = []
            clashes: list[float] = []
            commits: list[float] = []
            tip = base
            for candidate in candidates:
                begun = time.perf_counter()
                merged = merge_onto(repo, tip, candidate, base)
                (clashes if merged.conflicts else clean).append(time.perf_counter() - begun)
                if not merged.conflicts:
                    begun = time.perf_counter()
                    tip = commit_object(repo, merged.tree, [tip], "landed")
                    commits.append(time.perf_counter() - begun)
            plain = [_seconds(["git", "version"], root) for _ in range(10)]
            cells = (statistics.median(clean), max(clean), statistics.median(clashes or [0]))
            texts = [f"{value * 1000:.0f}" for value in (*cells, statistics.median(commits), statistics.median(plain))]
            print(f"| {size:,} | {' | '.join(texts)} |", flush=True)


def _repository(root: Path, size: int, count: int) -> tuple[str, list[str]]:
    """One commit with `size` files, and candidates on it. Every tenth changes a line that the one before it changes."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    lines = [f"line {n}" for n in range(40)]

    def text(number: int, edit: str = "") -> str:
        return "\n".join([f"file {number}", *lines[:20], edit or "middle", *lines[20:], ""])

    def name(number: int) -> str:
        return f"src/part{number // 100}/file{number}.py"

    def commit(ref: str, mark: int, parent: str, files: dict[str, str]) -> str:
        head = f"commit {ref}\nmark :{mark}\ncommitter B <b@example.test> 1 +0000\ndata 1\nx\n{parent}"
        return head + "".join(f"M 100644 inline {path}\ndata {len(body)}\n{body}\n" for path, body in files.items())

    stream = [commit("refs/heads/main", 1, "", {name(n): text(n) for n in range(size)})]
    for candidate in range(count):
        start = candidate - 1 if candidate % 10 == 9 else candidate
        places = [(start * 3 + offset) * 7 % size for offset in range(3)]
        files = {name(place): text(place, f"candidate {candidate}") for place in places}
        stream.append(commit(f"refs/heads/c{candidate}", candidate + 2, "from :1\n", files))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input="".join(stream).encode(), check=True)
    found = subprocess.run(
        ["git", "rev-parse", "main", *(f"c{number}" for number in range(count))],
        cwd=root,
        capture_output=True,
        check=True,
    )
    base, *candidates = found.stdout.decode().split()
    return base, candidates


def _seconds(command: list[str], folder: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/merge_queue.py --scale",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", action="store_true", help="the tables of docs/scale.md: 1,000 stories, 200 workers")
    parser.add_argument(
        "--git", action="store_true", help="how long merges take in repositories of 1,000 and 20,000 files"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="simulated runs per figure (default: 5; --scale: 1)")
    parser.add_argument("--agent", type=float, default=5, metavar="MIN", help="median of a session (default: 5)")
    parser.add_argument(
        "--stories", type=int, default=100, metavar="N", help="stories of a simulated run (default: 100)"
    )
    parser.add_argument("--candidates", type=int, default=50, metavar="N", help="merges to measure (default: 50)")
    options = parser.parse_args()
    if options.git:
        merges((1_000, 20_000), options.candidates)
    elif options.scale:
        scale(options.seeds or 1)
    else:
        throughput(options.seeds or 5, options.agent * MINUTE, options.stories)
    return 0


if __name__ == "__main__":
    sys.exit(main())
