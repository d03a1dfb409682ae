"""People are answered by another thread than the loop's: both write to one journal."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from ralph.core.events import Noted, Record
from ralph.journal.records import Journal, read


def test_threads_that_write_at_once_do_not_mix_their_records(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    heard: list[Record] = []
    journal = Journal(path, time.time)
    journal.listen(heard.append)

    def write(name: str) -> None:
        for number in range(200):
            journal.write(Noted(f"{name} {number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    records = list(read(path))
    assert [record.seq for record in records] == list(range(1, 601))
    assert records == heard, "a view sees them in the order of the journal"


def test_a_listener_may_write(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl", time.time)

    def answer(record: Record) -> None:
        if record.seq == 1:
            journal.write(Noted("so there"))

    journal.listen(answer)
    journal.write(Noted("first"))
    journal.close()
    assert [record.seq for record in read(tmp_path / "events.jsonl")] == [1, 2]
