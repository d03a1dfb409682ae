"""Several workers in every view: the same facts about each iteration as in a run without workers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.budget.costs import _Reader
from ralph.cli.live_view import LiveView
from ralph.cli.plain_view import describe
from ralph.cli.report import screen
from ralph.cli.summary import summary
from ralph.core.events import IterationEnded, IterationStarted, Landing, Record
from ralph.journal.records import read
from ralph.journal.run_state import RunState
from ralph.journal.sinks.logs import RunLog, activity, failures, sessions
from ralph.journal.sinks.progress import EVIDENCE, FEATURE, SECTIONS, TASKS, Progress
from ralph.journal.sinks.sink import Log, Sink, Sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.journal.statistics import Tally
from ralph.journal.workers import EntryState, WorkerState, iteration_of
from ralph.report.report import Report, _work, make_report
from ralph.views.columns import cells
from ralph.views.report_html import as_html
from ralph.views.report_markdown import as_markdown
from ralph.views.run_view import RunView
from ralph.views.worker_lines import workers_document
from support.interleaved import Lane, clashing, interleaved, lane_of, serial
from support.loops import CONFIG, LoopProject, Scenario, reviewed, run_ralph, short, whole

OFTEN = pytest.mark.parametrize("seed", range(12))


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> list[Lane]:
    """Real runs of the scripted agent: accepted, rejected, reviewed and fixed work."""
    made = []
    for letter, scenario in zip("ABC", (whole("feature"), short("tasks.json"), reviewed()), strict=True):
        made.append(lane_of(_real(tmp_path_factory.mktemp(letter), scenario), letter))
    assert sum(len(lane.iterations) for lane in made) >= 9
    return made


def _real(folder: Path, scenario: Scenario) -> list[Record]:
    project = LoopProject.make(folder / "made", scenario)
    assert run_ralph(project, "run", "--quiet").code == 0
    return [record for path in project.journals() for record in read(path)]


def story_of(records: Iterable[Record]) -> dict[int, tuple[str, int]]:
    """Iteration → its story, and its number among the iterations of the story."""
    found: dict[int, tuple[str, int]] = {}
    for record in records:
        if isinstance(event := record.event, IterationStarted):
            found[event.iteration] = (event.story, 1 + sum(story == event.story for story, _ in found.values()))
    return found


def state_of(records: Iterable[Record]) -> RunState:
    state = RunState()
    for record in records:
        state.add(record)
    return state


def lines_of(records: list[Record]) -> dict[tuple[str, int], list[str]]:
    """What `describe` says about each iteration, without numbers and totals."""
    state, stories = RunState(), story_of(records)
    found: dict[tuple[str, int], list[str]] = {}
    for record in records:
        state.add(record)
        text = describe(record, state, verbose=True)
        if text and (name := stories.get(iteration_of(record.event))):
            if state.is_parallel:
                worker = state.parallel.started(iteration_of(record.event))
                lead = f"[{worker.worker if worker else ''} {name[0]}] "
                assert all(line.startswith(lead) for line in text.splitlines()), text
                text = text.replace(lead, "")
            found.setdefault(name, []).append(re.sub(r"iteration \d+(/\d+)?|  \[[█░]+\] \d+/\d+", "", text))
    return found


QUEUE = re.compile(r"^  (in the merge queue|proving on the merged tree|proven on the merged tree)")


@OFTEN
def test_each_iteration_reads_as_without_workers(lanes: list[Lane], seed: int) -> None:
    expected = {name: lines for lane in lanes for name, lines in lines_of(serial(lane)).items()}
    shown = lines_of(interleaved(lanes, random.Random(seed)))
    assert {name: [line for line in lines if not QUEUE.match(line)] for name, lines in shown.items()} == expected


@OFTEN
def test_figures_add_up_to_those_of_the_serial_runs(lanes: list[Lane], seed: int) -> None:
    records = interleaved(lanes, random.Random(seed))
    state, parts = state_of(records), [state_of(serial(lane)) for lane in lanes]
    assert state.count == sum(part.count for part in parts)
    assert state.tokens.total == sum(part.tokens.total for part in parts)
    assert (state.cost_usd or 0) == pytest.approx(sum(part.cost_usd or 0 for part in parts))
    assert state.done == sum(part.done for part in parts) == state.total
    assert not state.parallel.open
    assert not state.parallel.queue
    tally, together = Tally(), Tally()
    for record in records:
        tally.add(record)
    for lane in lanes:
        for record in serial(lane):
            together.add(record)
    ours, theirs = (msgspec.structs.replace(each.figures(), runs=0) for each in (tally, together))
    assert (ours.reviews, ours.findings, ours.attempts) == (theirs.reviews, theirs.findings, theirs.attempts)
    assert {mode: effort.calls for mode, effort in ours.effort.items()} == {
        mode: effort.calls for mode, effort in theirs.effort.items()
    }


@OFTEN
def test_costs_and_work_go_to_their_story(lanes: list[Lane], seed: int) -> None:
    def receipts(records: list[Record]) -> list[tuple[object, ...]]:
        reader = _Reader(Path("/nowhere/run/events.jsonl"))
        for record in records:
            reader.add(record)
        found = (msgspec.structs.replace(one, at=0, iteration=0) for one in reader.receipts())
        return sorted((one.story, one.mode, one.outcome, one.tokens.total, one.usd or 0) for one in found)

    def work(records: list[Record]) -> dict[str, object]:
        return {
            story: (each.iterations, each.seconds, each.tokens, each.cost_usd, list(each.commits), each.doubts)
            for story, each in _work(records).items()
            if story
        }

    records = interleaved(lanes, random.Random(seed))
    alone = [serial(lane) for lane in lanes]
    assert receipts(records) == sorted(one for each in alone for one in receipts(each))
    assert work(records) == {story: facts for each in alone for story, facts in work(each).items()}


def entries(folder: Path, records: list[Record], make: Callable[[WorkspaceFiles, Path], Sink]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "out"
    for old in (*path.glob("*"), *([path] if path.is_file() else [])):
        old.unlink()
    files = WorkspaceFiles(folder)
    sinks = Sinks(files, [make(files, path)])
    for record in records:
        sinks(record)
    assert not sinks.failures
    return "".join(one.read_text() for one in (sorted(path.glob("*")) if path.is_dir() else [path]) if one.is_file())


SINKS: dict[str, Callable[[WorkspaceFiles, Path], Sink]] = {
    "sections": lambda files, path: Progress(files, path, "Shop", SECTIONS),
    "tasks": lambda files, path: Progress(files, path, "Shop", TASKS),
    "feature": lambda files, path: Progress(files, path, "Shop", FEATURE),
    "evidence": lambda files, path: Progress(files, path, "Shop", EVIDENCE),
    "activity": lambda files, path: Log(files, path, activity),
    "sessions": lambda files, path: Log(files, path, sessions),
    "failures": lambda files, path: Log(files, path, failures),
    "run log": RunLog,
}
ENTRY = {
    "sections": r"(?=\n## )",
    "tasks": r"(?<=---\n)",
    "feature": r"(?=\n---\n)",
    "evidence": r"(?=\n## )",
    "activity": "(?<=\n)",
    "sessions": "(?<=\n)",
    "failures": "(?==== )",
    "run log": r"(?m)(?=^\S+Z iteration \d+: (?:implement|review|fix) )",
}
TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:]+Z|:\d{10}:|[Ii]teration[ :=]+\d+|, worker \d|run ended: complete|worker \d started"
)
QUEUE_LINES = r" +(in the merge queue|proving the merged|proven on the merged|merging).*\n"
ADDED = re.compile(QUEUE_LINES + r"| +verdict: accepted\n(?: {5}[^|].*\n)*")


def parts(text: str, kind: str) -> list[str]:
    shown = sorted(TIMES.sub("", part) for part in re.split(ENTRY[kind], text) if kind != "tasks" or "Verdict" in part)
    shown = [re.sub(r"^ *\n", "", ADDED.sub("", part), flags=re.M) for part in shown if "Started: " not in part[:60]]
    return [part for part in shown if part.strip(" -\n")]


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("seed", range(5))
def test_every_sink_puts_each_record_under_its_iteration(
    lanes: list[Lane], tmp_path: Path, kind: str, seed: int
) -> None:
    def bodies(records: list[Record]) -> list[str]:
        found = parts(entries(tmp_path / "w", records, SINKS[kind]), kind)
        return sorted(part for part in found if not re.search(r"stories done", part))

    expected = sorted(part for lane in lanes for part in bodies(serial(lane)))
    assert expected
    assert bodies(interleaved(lanes, random.Random(seed))) == expected


def test_workers_and_the_queue_are_in_the_state() -> None:
    state = state_of(clashing())
    workers = state.parallel.known
    assert [workers[n].state for n in (1, 2, 3, 4)] == [
        WorkerState.PROVING,
        WorkerState.WORKING,
        WorkerState.WORKING,
        WorkerState.LOST,
    ]
    assert [(entry.story, entry.state) for entry in state.parallel.queue.values()] == [
        ("US-005", EntryState.PROVING),
        ("US-006", EntryState.WAITING),
    ]
    assert sorted(state.parallel.open) == [5, 6, 7, 8]
    assert (state.returned, state.red_merged, state.parallel.lost) == (2, 1, 1)
    red, conflict = state.parallel.clashes
    assert (red.is_red, red.story, red.merged_meanwhile) == (True, "US-002", ("US-001",))
    assert (conflict.is_red, conflict.story, conflict.merged_meanwhile) == (False, "US-003", ("US-001",))


def test_the_document_of_the_status_has_workers_iterations_and_the_queue() -> None:
    document: Any = workers_document(state_of(clashing()))
    assert [(one["worker"], one["state"], one["iteration"]) for one in document["workers"]] == [
        (1, "proving", None),
        (2, "working", 7),
        (3, "working", 8),
        (4, "lost", None),
    ]
    assert [one["story"] for one in document["open"]] == ["US-005", "US-006", "US-007", "US-008"]
    assert [(one["story"], one["state"]) for one in document["queue"]] == [("US-005", "proving"), ("US-006", "waiting")]
    assert document["queue"][0]["since"].startswith("2023-11-14T22:")
    assert (document["returned"], document["red_merged"]) == (2, 1)


def panel(records: list[Record], columns: int, rows: int) -> list[str]:
    view = LiveView()
    for record in records:
        view.add(record)
    shown = view.panel(columns, rows)
    assert all(width < columns for _, width in shown)
    assert all(cells(line) == width for line, width in shown)
    return [line for line, _ in shown]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (40, 12)])
def test_the_panel_shows_busy_workers_first_and_fits(columns: int, rows: int) -> None:
    lines = panel(clashing(30), columns, rows)
    assert len(lines) < rows
    text = "\n".join(lines)
    busy = [line.split()[0] for line in lines if re.match(r" +\d+ (US-\d+|-) ", line)]
    assert busy[:3] == ["1", "2", "3"]
    assert re.search(r"… \d+ more: (\d+ idle, )?1 lost|… \d+ more: \d+ idle", text)
    assert "queue  US-005 proving on worker 1" in text


def test_the_panel_names_what_each_worker_does() -> None:
    text = "\n".join(panel(clashing(), 80, 24))
    assert re.search(r"1 US-005 proving ", text)
    assert re.search(r"2 US-007 implement .* starting", text)
    assert re.search(r"4 - +lost .* killed by signal 9", text)
    assert "US-006 waiting" in text
    assert "✓ US-001 accepted: done" in text or "↩ US-003 returned: text conflict in src/cart.py" in text


def test_plain_lines_of_the_queue_and_of_lost_workers() -> None:
    state, lines = RunState(), []
    for record in clashing():
        state.add(record)
        lines += describe(record, state).splitlines()
    assert "[2 US-002]   failed on the merged tree: check tests failed with exit code 1" in lines
    assert any(line.startswith("[2 US-002] ↩ returned US-002: green alone, red merged: check tests") for line in lines)
    assert "[1 US-001]   proven on the merged tree (2.0 s)" in lines
    assert "worker 4 lost: killed by signal 9; US-004 is started again" in lines
    assert "[3 US-006]   in the merge queue, behind 1 other" in lines


def report_of(records: list[Record]) -> Report:
    return make_report(records, is_alive=False, env={"HOME": "/nowhere"})


def view_of(records: list[Record]) -> RunView:
    view = RunView(Path("/nowhere/events.jsonl"))
    for record in records:
        view.add(record, 0)
    return view


def test_the_report_tells_a_red_merge_apart() -> None:
    report, view = report_of(clashing()), view_of(clashing())
    told = "US-002 iteration 2 was green alone and red merged with US-001: "
    text = "\n".join(screen(report, None))
    assert told in text
    assert "US-003 iteration 3 conflicts with US-001: text conflict in src/cart.py" in text
    assert "5 candidates, 1 merged, 2 returned (1 green alone, red merged)" in text
    assert told in as_html(report, view)
    assert "green alone and red merged with US-001" in as_markdown(report)
    document = report.document()
    assert document["clashes"] == report.clashes
    assert [story.red_merged for story in report.stories][:3] == [0, 1, 0]
    assert "returned 1 time (1 green alone, red merged)" in text


def test_the_time_of_workers_adds_up() -> None:
    report = report_of(clashing())
    assert len(report.workers) == 4
    for worker in report.workers:
        assert worker.busy + worker.proving + worker.idle == pytest.approx(worker.end - worker.start)
    first = report.workers[0]
    assert first.proving > 0
    assert [span.result for span in first.spans] == ["accepted", "proven", "red", ""]
    assert report.workers[3].is_lost
    assert report.queue.longest_wait >= report.queue.mean_wait > 0
    page = as_html(report, view_of(clashing()))
    assert [f"<td class=id>{number}</td>" in page for number in (1, 2, 3, 4)] == [True] * 4
    assert page.count(">worker 1</text>") == 2  # wide, and for a phone


def test_a_run_without_workers_has_none_of_it(lanes: list[Lane]) -> None:
    records = serial(lanes[0])
    report, state = report_of(records), state_of(records)
    assert not report.workers
    assert "Workers" not in as_html(report, view_of(records)) + as_markdown(report)
    assert "Workers" not in "\n".join(screen(report, None))
    assert not any("workers" in line or "returned" in line for line in summary(state))


def test_the_summary_counts_what_was_returned() -> None:
    text = "\n".join(summary(state_of(clashing())))
    assert "returned   2 iterations (1 green alone, red merged: US-002)" in text
    assert "workers    4, 1 lost" in text


def test_entries_wait_while_another_iteration_lands(tmp_path: Path) -> None:
    """What is written to the tree then would be committed, or rolled back, with the one that lands."""
    files = WorkspaceFiles(tmp_path)
    sinks = Sinks(files, [Progress(files, tmp_path / "progress.md", "Shop", SECTIONS)])
    records = clashing()
    landing = next(n for n, record in enumerate(records) if isinstance(record.event, Landing))
    ended = next(r for r in records if isinstance(r.event, IterationEnded) and r.event.iteration == 3)
    for record in [*records[: landing + 1], ended]:
        sinks(record)
    assert "US-003" not in (tmp_path / "progress.md").read_text()
    sinks(records[landing + 1])
    text = (tmp_path / "progress.md").read_text()
    assert text.index("US-001") < text.index("US-003")


def test_a_real_run_that_is_green_alone_and_red_merged(tmp_path: Path) -> None:
    """Both sessions start from the same commit: each waits for the other one."""
    here = tmp_path / "here"
    here.mkdir()

    def first(own: str, other: str) -> str:
        meet = f"touch {here}/{own}; while [ ! -e {here}/{other} ]; do sleep 0.05; done"
        return f'    - implement: [{{run: "{meet}"}}, {{write: {{path: src/{own}.flag, text: x}}}}, claim]\n'

    again = "    - implement: [{run: 'rm -f src/*.flag'}, {write: {path: src/again.txt, text: x}}, claim]\n"
    stories = {"US-001": "Say one", "US-002": "Say two"}
    script = f"stories:\n  US-001:\n{first('one', 'two')}{again}  US-002:\n{first('two', 'one')}{again}"
    check = "if [ -e src/one.flag ] && [ -e src/two.flag ]; then echo both; exit 1; fi\n"
    config = f"{CONFIG}sandbox: {{use: none}}\nproof: {{minimum: unproven}}\n"
    made = LoopProject.make(tmp_path / "made", Scenario("feature", stories, script, [], check=check, config=config))
    done = run_ralph(made, "run", "--plain", "--parallel", "2")
    assert done.code == 0, done.err
    back = re.search(r"\[(\d) (US-\d+)\] ↩ returned US-\d+: green alone, red merged: check 'words'", done.out)
    assert back, done.out
    worker, story = back.groups()
    other = "US-002" if story == "US-001" else "US-001"
    assert "returned   1 iteration (1 green alone, red merged" in done.out

    report = run_ralph(made, "report").out
    assert f"was green alone and red merged with {other}: check 'words' failed" in report
    assert run_ralph(made, "report", "--json").json["clashes"][0]["merged_meanwhile"] == [other]
    lines = run_ralph(made, "log", "--worker", worker).out.splitlines()
    assert lines
    assert all(f"[{worker} US-" in line for line in lines)
    lines = run_ralph(made, "log", "--story", story).out.splitlines()
    assert len(lines) >= 4
    assert all(re.search(rf"\[\d {story}\]", line) for line in lines)
    assert "both" in run_ralph(made, "log", "--check", "--story", story).out
    assert run_ralph(made, "log", "--check", "--story", other).code != 0
    assert run_ralph(made, "log", "--worker", "77").code != 0
    assert f"implement {other}" in run_ralph(made, "log", "--agent", "--story", other).out
    assert ", 2 workers, " in run_ralph(made, "runs").out
    sections = (made.plan.parent / "progress.txt").read_text().split("\n---\n")
    assert sum(f"Story: {story} " in part for part in sections) == 2
