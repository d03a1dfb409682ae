from __future__ import annotations

from ralph.engine.queue import (
    Entry,
    Queue,
    building,
    clashed,
    enqueue,
    failed,
    failure,
    landed,
    merged_commit,
    moved,
    obsolete,
    proved,
    ready,
    removed,
    stopped,
    wanted,
)


def _queue(*iterations: int, tip: str = "T") -> Queue:
    queue = moved(Queue(), tip)
    for number in iterations:
        queue = enqueue(queue, Entry(number, f"US-{number}", f"c{number}", "B"))
    return queue


def _start(queue: Queue, *, batch: int = 1, speculate: int = 0) -> tuple[Queue, list[str]]:
    keys = []
    for build in wanted(queue, queue.tip, batch=batch, speculate=speculate):
        queue = building(queue, build.key, f"m-{build.key}")
        keys.append(build.key)
    return queue, keys


def _numbers(entries: tuple[Entry, ...]) -> list[int]:
    return [entry.iteration for entry in entries]


def test_the_head_is_proved_on_the_tip_and_lands() -> None:
    queue, keys = _start(_queue(1, 2))
    assert keys == ["T:+1"]
    assert ready(queue, "T") == ()
    queue = proved(queue, "T:+1", passed=True)
    assert _numbers(ready(queue, "T")) == [1]
    assert ready(queue, "another tip") == ()
    queue = landed(queue, 1, "T1")
    assert _numbers(queue.entries) == [2]
    assert [build.key for build in wanted(queue, "T1")] == ["T1:+2"]


def test_entries_behind_the_head_are_proved_on_top_of_it() -> None:
    queue, keys = _start(_queue(1, 2, 3, 4), speculate=2)
    assert keys == ["T:+1", "T:1+2", "T:1.2+3"]
    assert merged_commit(queue, "") == ""
    assert merged_commit(queue, "T:1+2") == "m-T:1+2"
    assert wanted(queue, "T", speculate=2) == ()


def test_a_speculative_proof_waits_for_the_ones_before_it() -> None:
    queue, _ = _start(_queue(1, 2), speculate=1)
    queue = proved(queue, "T:1+2", passed=True)
    assert ready(queue, "T") == ()
    queue = proved(queue, "T:+1", passed=True)
    assert _numbers(ready(queue, "T")) == [1, 2]


def test_speculative_builds_stay_valid_when_the_head_lands_as_proven() -> None:
    queue, _ = _start(_queue(1, 2, 3), speculate=2)
    queue = proved(queue, "T:+1", passed=True)
    queue = landed(queue, 1, "T1")
    assert wanted(queue, "T1", speculate=2) == ()
    assert obsolete(queue, ["T:1+2", "T:1.2+3"]) == ()
    queue = proved(queue, "T:1+2", passed=True)
    assert _numbers(ready(queue, "T1")) == [2]


def test_only_builds_on_top_of_what_landed_stay_valid() -> None:
    queue = building(building(_queue(1, 2, 3), "T:+1", "m1"), "T:2+3", "without 1")
    queue = proved(proved(queue, "T:+1", passed=True), "T:2+3", passed=False)
    queue = landed(queue, 1, "T1")
    assert queue.proofs == ()


def test_everything_is_proved_again_when_the_head_lands_with_other_content() -> None:
    queue, _ = _start(_queue(1, 2), speculate=1)
    queue = proved(proved(queue, "T:+1", passed=True), "T:1+2", passed=True)
    queue = landed(queue, 1, "T1", as_proven=False)
    assert ready(queue, "T1") == ()
    assert [build.key for build in wanted(queue, "T1")] == ["T1:+2"]


def test_what_was_built_on_a_failed_head_is_built_again_without_it() -> None:
    queue, keys = _start(_queue(1, 2, 3), speculate=2)
    queue = proved(queue, "T:+1", passed=False, why="1 test failed")
    assert _numbers(failed(queue)) == [1]
    reason = failure(queue, 1)
    assert reason is not None
    assert reason.why == "1 test failed"
    assert obsolete(queue, keys[1:]) == ("T:1+2", "T:1.2+3")
    assert [build.key for build in wanted(queue, "T", speculate=2)] == ["T:+2", "T:2+3"]
    queue = removed(queue, 1)
    assert failed(queue) == ()
    assert [build.key for build in wanted(queue, "T", speculate=2)] == ["T:+2", "T:2+3"]


def test_an_entry_that_fails_on_unproven_work_is_not_failed_yet() -> None:
    queue, _ = _start(_queue(1, 2, 3), speculate=2)
    queue = proved(queue, "T:1+2", passed=False)
    assert failed(queue) == ()
    # If 1 lands, 2 is returned: so 3 is proved without it.
    assert [build.key for build in wanted(queue, "T", speculate=2)] == ["T:1+3"]
    queue = proved(queue, "T:+1", passed=True)
    queue = landed(queue, 1, "T1")
    assert _numbers(failed(queue)) == [2]


def test_an_entry_that_fails_on_a_failed_one_gets_another_chance() -> None:
    queue, _ = _start(_queue(1, 2), speculate=1)
    queue = proved(proved(queue, "T:1+2", passed=False), "T:+1", passed=False)
    assert _numbers(failed(queue)) == [1]
    queue = removed(queue, 1)
    assert failed(queue) == ()
    assert [build.key for build in wanted(queue, "T")] == ["T:+2"]


def test_a_clash_with_the_tip_fails_and_a_clash_with_unproven_work_does_not() -> None:
    queue = _queue(1, 2, 3)
    queue = building(queue, "T:+1", "m1")
    queue = clashed(queue, "T:1+2", 2, "CONFLICT in a.txt")
    assert failed(queue) == ()
    assert [build.key for build in wanted(queue, "T", speculate=1)] == ["T:1+3"]
    queue = landed(proved(queue, "T:+1", passed=True), 1, "T1")
    assert _numbers(failed(queue)) == [2]
    reason = failure(queue, 2)
    assert reason is not None
    assert reason.why == "CONFLICT in a.txt"


def test_a_clash_inside_a_batch_splits_it() -> None:
    queue = _queue(1, 2, 3, 4)
    (build,) = wanted(queue, "T", batch=4)
    assert _numbers(build.entries) == [1, 2, 3, 4]
    queue = clashed(queue, build.key, 3)
    assert [build.key for build in wanted(queue, "T", batch=4, speculate=1)] == ["T:+1.2", "T:1.2+4"]


def test_a_red_batch_is_bisected() -> None:
    queue, keys = _start(_queue(1, 2, 3, 4), batch=4)
    assert keys == ["T:+1.2.3.4"]
    queue = proved(queue, keys[0], passed=False)
    assert failed(queue) == ()
    queue, keys = _start(queue, batch=4)
    assert keys == ["T:+1.2"]
    queue = proved(queue, keys[0], passed=True)
    assert _numbers(ready(queue, "T")) == [1, 2]
    queue = landed(queue, 1, "T1")
    assert _numbers(ready(queue, "T1")) == [2]
    queue = landed(queue, 2, "T2")
    queue, keys = _start(queue, batch=4)
    assert keys == ["T2:+3"]
    queue = proved(queue, keys[0], passed=True)
    queue = landed(queue, 3, "T3")
    # 1, 2, 3 and 4 together are known to be red: that needs no other proof.
    assert _numbers(failed(queue)) == [4]


def test_a_red_batch_is_told_apart_at_once_if_enough_is_proved_ahead() -> None:
    queue, keys = _start(_queue(1, 2, 3, 4), batch=4, speculate=2)
    queue = proved(queue, keys[0], passed=False)
    queue, keys = _start(queue, batch=4, speculate=2)
    assert keys == ["T:+1", "T:1+2", "T:1.2+3"]
    for key in keys:
        queue = proved(queue, key, passed=True)
    for number in (1, 2, 3):
        queue = landed(queue, number, f"T{number}")
    assert _numbers(failed(queue)) == [4]


def test_a_moved_branch_drops_every_proof() -> None:
    queue, keys = _start(_queue(1, 2), speculate=1)
    queue = moved(proved(queue, "T:+1", passed=True), "P")
    assert ready(queue, "P") == ()
    assert obsolete(queue, keys) == tuple(keys)
    assert proved(queue, "T:+1", passed=True) == queue
    assert [build.key for build in wanted(queue, "P", speculate=1)] == ["P:+1", "P:1+2"]


def test_a_tip_that_the_queue_has_not_heard_of_counts() -> None:
    queue, _ = _start(_queue(1, 2), speculate=1)
    builds = wanted(queue, "P", speculate=1)
    assert [(build.key, build.onto_key) for build in builds] == [("P:+1", ""), ("P:1+2", "P:+1")]
    queue = building(queue, "P:+1", "m1")
    assert queue.tip == "P"
    assert merged_commit(queue, builds[1].onto_key) == "m1"
    assert merged_commit(queue, "T:+1") == ""


def test_a_lost_build_is_wanted_again() -> None:
    queue, keys = _start(_queue(1))
    queue = stopped(queue, keys[0])
    assert [build.key for build in wanted(queue, "T")] == keys


def test_an_entry_is_queued_once() -> None:
    queue = _queue(1)
    assert enqueue(queue, queue.entries[0]) == queue
