"""The merge queue against one at a time, with random collisions, people who commit, and answers in any order."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.engine.queue import (
    Build,
    Entry,
    Queue,
    building,
    clashed,
    enqueue,
    failed,
    landed,
    moved,
    obsolete,
    proved,
    ready,
    removed,
    stopped,
    wanted,
)


class World:
    """What clashes in text, and what is red. Negative numbers are commits of people."""

    def __init__(self, random: Random, count: int) -> None:
        numbers = range(-5, count + 1)
        pairs = [(a, b) for a in numbers for b in numbers if a < b]
        rate = random.choice([0, 0.05, 0.15])
        self.clashes = {pair for pair in pairs if random.random() < rate}
        self.red_pairs = {pair for pair in pairs if random.random() < rate}
        self.red_alone = {number for number in range(1, count + 1) if random.random() < rate}

    def merges(self, content: tuple[int, ...], number: int) -> bool:
        return not any(tuple(sorted((other, number))) in self.clashes for other in content)

    def passes(self, content: tuple[int, ...]) -> bool:
        return not self.red_alone.intersection(content) and not any(
            (a, b) in self.red_pairs for a in content for b in content
        )

    def accepts(self, content: tuple[int, ...], number: int) -> bool:
        """On its own, as a run without a queue would decide."""
        return self.merges(content, number) and self.passes((*content, number))


class Driver:
    """Does what the queue asks for, in random order."""

    def __init__(self, random: Random, count: int, *, people: bool) -> None:
        self.random = random
        self.world = World(random, count)
        self.batch, self.speculate = random.choice([1, 1, 2, 3, 5]), random.choice([0, 1, 3, 8])
        self.coming = list(range(1, count + 1))
        self.people = [-1, -2, -3] if people else []
        self.content: tuple[int, ...] = ()
        self.queue = moved(Queue(), "0")
        self.running: dict[str, tuple[int, ...]] = {}
        self.merged: dict[str, tuple[int, ...]] = {"": ()}
        self.proven: set[tuple[int, ...]] = set()
        self.landed: list[int] = []
        self.returned: list[int] = []
        self.tips = 0

    def play(self) -> None:
        for _ in range(200 * (len(self.coming) + 3)):
            if not self.coming and not self.queue.entries and not self.people:
                return
            self._start()
            can_go_on = self.running or ready(self.queue, self.tip) or failed(self.queue)
            assert can_go_on or not self.queue.entries, "the queue waits for nothing"
            self.random.choice([self._arrive, self._answer, self._answer, self._land, self._return, self._person])()
        raise AssertionError("the queue does not end")

    @property
    def tip(self) -> str:
        return str(self.tips)

    def _start(self) -> None:
        while builds := wanted(self.queue, self.tip, batch=self.batch, speculate=self.speculate):
            assert len(builds) <= self.speculate + 1
            self.queue = moved(self.queue, self.tip)
            for build in builds:
                if not self._merge(build):
                    break
        for key in obsolete(self.queue, list(self.running)):
            self.queue = stopped(self.queue, key)
            del self.running[key]

    def _merge(self, build: Build) -> bool:
        assert build.key not in self.running
        content = self.merged[build.onto_key] if build.onto_key else self.content
        for entry in build.entries:
            if not self.world.merges(content, entry.iteration):
                self.queue = clashed(self.queue, build.key, entry.iteration)
                return False
            content = (*content, entry.iteration)
        self.queue = building(self.queue, build.key, "merged")
        self.running[build.key] = self.merged[build.key] = content
        return True

    def _arrive(self) -> None:
        if self.coming:
            number = self.coming.pop(0)
            self.queue = enqueue(self.queue, Entry(number, f"US-{number}", "commit", "base"))

    def _answer(self) -> None:
        if not self.running:
            return
        key = self.random.choice(sorted(self.running))
        content = self.running.pop(key)
        if self.random.random() < 0.05:  # the worker is lost
            self.queue = stopped(self.queue, key)
            return
        passed = self.world.passes(content)
        if passed:
            self.proven.add(content)
        self.queue = proved(self.queue, key, passed)

    def _land(self) -> None:
        entries = ready(self.queue, self.tip)
        if not entries:
            return
        result = (*self.content, *(entry.iteration for entry in entries))
        assert result in self.proven, "landed on something that is not what was proven"
        for number, entry in enumerate(entries, 1):
            assert entry.iteration not in self.landed
            assert self.world.accepts(self.content, entry.iteration)
            if self.batch == 1:
                assert (*self.content, entry.iteration) in self.proven
            self.content = (*self.content, entry.iteration)
            self.landed.append(entry.iteration)
            self.tips += 1
            as_proven = self.random.random() < 0.9
            self.queue = landed(self.queue, entry.iteration, self.tip, as_proven=as_proven)
            rest = entries[number:]
            assert ready(self.queue, self.tip)[: len(rest)] == (rest if as_proven else ())
            if not as_proven or self.random.random() < 0.3:
                return

    def _return(self) -> None:
        for entry in failed(self.queue):
            assert not self.world.accepts(self.content, entry.iteration), "returned, but it is fine on the tip"
            self.queue = removed(self.queue, entry.iteration)
            self.returned.append(entry.iteration)

    def _person(self) -> None:
        if self.people and self.random.random() < 0.2:
            self.content = (*self.content, self.people.pop())
            self.tips += 1
            if self.random.random() < 0.5:  # otherwise `wanted` notices
                self.queue = moved(self.queue, self.tip)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_no_entry_is_lost_or_landed_twice_and_every_decision_is_that_of_one_at_a_time(seed: int, count: int) -> None:
    driver = Driver(Random(seed), count, people=True)
    driver.play()
    assert sorted([*driver.landed, *driver.returned]) == list(range(1, count + 1))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_batches_and_speculation_accept_what_one_at_a_time_accepts(seed: int, count: int) -> None:
    driver = Driver(Random(seed), count, people=False)
    driver.play()
    content: tuple[int, ...] = ()
    for number in range(1, count + 1):
        if driver.world.accepts(content, number):
            content = (*content, number)
    assert tuple(driver.landed) == content


def test_two_entries_that_are_green_only_together_land_only_as_a_batch() -> None:
    """The one difference between a batch and one at a time: 1 needs 2, and the batch has both."""
    for batch, expected in ((1, []), (2, [1, 2])):
        queue = moved(Queue(), "T")
        for number in (1, 2):
            queue = enqueue(queue, Entry(number, f"US-{number}", "commit", "base"))
        for build in wanted(queue, "T", batch=batch):
            queue = building(queue, build.key, "merged")
            queue = proved(queue, build.key, passed=len(build.entries) == 2)
        assert [entry.iteration for entry in ready(queue, "T")] == expected
        assert [entry.iteration for entry in failed(queue)] == ([] if expected else [1])
