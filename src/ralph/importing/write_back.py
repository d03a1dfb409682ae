"""`ralph plan export --status`: what is done here is marked as done where it was imported from.

Nothing is reopened or changed otherwise. What is done there and open here is reported.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, RalphError, SetupError, UsageError
from ralph.core.plan import Story
from ralph.core.text import one_line, plural
from ralph.host.files import read_bytes, write_bytes
from ralph.importing.formats import beads as bead_format
from ralph.importing.formats.taskmaster import lists_in
from ralph.importing.kinds import KINDS
from ralph.importing.records import decode
from ralph.importing.stories import read_imports, source_home, sources_in
from ralph.importing.wording import Fate, fate
from ralph.plans import beads as tracker
from ralph.plans.integrity import decode_utf8
from ralph.plans.json_text import Array, Object, decode_object, style_of
from ralph.plans.json_text import Path as JsonPath
from ralph.proof.records import Proof, gather
from ralph.report.pull_request import gh, text_for_github
from ralph.state.places import workspace_state
from ralph.workspace.find import OpenPlan
from ralph.workspace.trust import refuse_inside_loop

_GITHUB = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)?#(?P<number>[1-9][0-9]*)")


class Mark(Struct, frozen=True):
    """An item of the other tool, and the story made from it."""

    item: str
    story: str
    title: str
    note: str = ""


class WrittenBack(Struct, frozen=True, kw_only=True):
    to: str
    where: str
    """A file, or the program that was called."""
    marked: tuple[Mark, ...] = ()
    same: int = 0
    """Stories that were done there already."""
    ahead: tuple[Mark, ...] = ()
    """Done there, open here: not touched."""
    missing: tuple[Mark, ...] = ()
    """Not there any more."""
    failed: str = ""
    """Why the others could not be marked."""


class _Job(Struct, frozen=True):
    opened: OpenPlan
    stories: dict[str, Story]
    """What the other tool calls the item → the story."""
    file: str
    dry: bool
    env: Mapping[str, str]
    proofs: Mapping[str, Proof]

    def mark(self, item: str) -> Mark:
        story = self.stories[item]
        return Mark(item, story.id, story.title, _proven_by(self.proofs.get(story.id)))


def write_back(opened: OpenPlan, to: str, file: str, env: Mapping[str, str], *, dry: bool) -> WrittenBack:
    """`file`: of the other tool; empty: in its usual place."""
    refuse_inside_loop(env, "write to other tools")
    origins = _origins(opened, to, env)
    if not origins:
        hint = f"`ralph import` keeps where a story comes from; import from {to} first"
        raise UsageError(f"no story of {opened.ref.path} comes from {to}", hint=hint)
    proofs = gather(workspace_state(opened.root, env), opened.ref).stories
    return _TARGETS[to](_Job(opened, origins, file, dry, env, proofs))


def _origins(opened: OpenPlan, to: str, env: Mapping[str, str]) -> dict[str, Story]:
    """From the record in the state folder. Notes, which agents may write, count only where there is no record."""
    record = read_imports(opened.ref, env) or sources_in(opened.plan)
    found = {key: opened.plan.story(story_id) for key, story_id in record.items()}
    if to == "beads":
        found |= {f"beads:{story.ref}": story for story in opened.plan.stories if story.ref}
    prefix = f"{to}:"
    return {key.removeprefix(prefix): story for key, story in found.items() if story and key.startswith(prefix)}


def _proven_by(proof: Proof | None) -> str:
    if proof is None or not proof.is_done:
        return "marked as done in the plan; no run has proven it"
    grade = f", {proof.grade}" if proof.grade else ""
    commit = f"commit {proof.commit}{grade}" if proof.commit else f"accepted by run {proof.run}{grade}"
    passed = sum(check.passed for check in proof.checks)
    return f"{commit}; {plural(passed, 'check')} passed" if passed and proof.is_proven else commit


def _sorted(job: _Job, is_done_there: Mapping[str, bool]) -> tuple[list[str], int, tuple[Mark, ...], tuple[Mark, ...]]:
    """What to mark, how many are done already, what is ahead there, and what is missing there."""
    done = {item for item, story in job.stories.items() if story.is_done}
    there = {item for item in job.stories if item in is_done_there}
    return (
        [item for item in job.stories if item in done & there and not is_done_there[item]],
        sum(is_done_there[item] for item in done & there),
        tuple(job.mark(item) for item in job.stories if item in there - done and is_done_there[item]),
        tuple(job.mark(item) for item in job.stories if item not in there),
    )


def _one_by_one(items: Iterable[str], job: _Job, close: Callable[[Mark], bool]) -> tuple[tuple[Mark, ...], str]:
    """What `close` closed. If one fails, the ones before it stay closed, and the rest is left."""
    marked: list[Mark] = []
    for item in items:
        mark = job.mark(item)
        try:
            if close(mark):
                marked.append(mark)
        except RalphError as error:
            if not marked:
                raise
            return tuple(marked), f"{item}: {error.message}"
    return tuple(marked), ""


def _to_github(job: _Job) -> WrittenBack:
    """Only issues of finished stories are looked at: each is a call."""
    issues = {item: found for item in job.stories if (found := _GITHUB.fullmatch(item))}
    done = [item for item in issues if job.stories[item].is_done]

    def call(verb: str, item: str, *options: str) -> bytes:
        repo = issues[item]["repo"]
        words = ["issue", verb, issues[item]["number"], *([f"--repo={repo}"] if repo else []), *options]
        return gh(job.opened.root, words, "", job.env).out

    def close(mark: Mark) -> bool:
        try:
            found = msgspec.json.decode(call("view", mark.item, "--json=state"), type=dict[str, Any])
        except msgspec.DecodeError:
            hint = f"try `gh issue view {issues[mark.item]['number']} --json state` yourself"
            raise BadData(f"gh did not say the state of {mark.item}", hint=hint) from None
        if str(found.get("state", "")).upper() != "OPEN":
            return False
        if not job.dry:
            comment = text_for_github(f"Done: {one_line(mark.title, 200)} ({mark.note}).")
            call("close", mark.item, "--reason=completed", f"--comment={comment}")
        return True

    marked, failed = _one_by_one(done, job, close)
    same = 0 if failed else len(done) - len(marked)
    return WrittenBack(to="github", where="gh", marked=marked, same=same, failed=failed)


def _to_beads(job: _Job) -> WrittenBack:
    root = job.opened.root
    file = Path(job.file) if job.file else root / tracker.EXPORT
    if not job.file and (tool := tracker.find(job.env, root)) and (root / tracker.FOLDER).is_dir():
        statuses = {item: status == "closed" for item, status in tool.statuses(job.stories).items()}
        todo, same, ahead, missing = _sorted(job, statuses)

        def close(mark: Mark) -> bool:
            if not job.dry:
                tool.close(mark.item, mark.note)
            return True

        marked, failed = _one_by_one(todo, job, close)
        return WrittenBack(
            to="beads", where=tool.name, marked=marked, same=same, ahead=ahead, missing=missing, failed=failed
        )
    data = _read(file, "beads")
    lines = data.split(b"\n")
    found = {str(bead.get("id", "")): (number, bead) for number, line in enumerate(lines) if (bead := _bead(line))}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    todo, same, ahead, missing = _sorted(job, {own: bead.get("status") == "closed" for own, (_, bead) in found.items()})
    for item in todo:
        number, bead = found[item]
        bead |= {"status": "closed", "updated_at": now, "closed_at": now, "close_reason": job.mark(item).note}
        lines[number] = json.dumps(bead, ensure_ascii=False, separators=(",", ":")).encode()
    _write(file, b"\n".join(lines), job, todo)
    return WrittenBack(
        to="beads", where=str(file), marked=tuple(map(job.mark, todo)), same=same, ahead=ahead, missing=missing
    )


def _bead(line: bytes) -> dict[str, Any]:
    """Empty for a line that holds none, or a deleted one."""
    bead = decode_object(line) or {}
    return {} if bead.get("status") in bead_format.GONE else bead


def _to_taskmaster(job: _Job) -> WrittenBack:
    root = job.opened.root
    usual = [root / place for place in KINDS["taskmaster"].places]
    file = Path(job.file) if job.file else next((path for path in usual if path.is_file()), usual[0])
    data = _read(file, "Taskmaster")
    document = decode(decode_utf8(data, str(file)).removeprefix("\ufeff"), str(file))
    tasks = {own: (path, task) for own, path, task in _tasks(document)}
    home = source_home(str(file))
    own_names = {item: item.partition("#")[2] for item in job.stories if item.partition("#")[0] in (home, "-")}
    if not own_names:
        raise UsageError(f"no story comes from {file}", hint="name the file that was imported with --to FILE")
    named = msgspec.structs.replace(job, stories={name: job.stories[item] for item, name in own_names.items()})
    todo, same, ahead, missing = _sorted(named, {own: _is_done(task) for own, (_, task) in tasks.items()})
    start = len(data) - len(data.removeprefix(b"\xef\xbb\xbf").lstrip())
    body = data[start:].rstrip()
    paths = [tasks[own][0] for own in todo]
    parents = _finished_parents(document, tasks, todo)
    for path in [*paths, *parents]:
        body = _with_done(body, (*path, "status"))
    _write(file, data[:start] + body + data[start + len(data[start:].rstrip()) :], job, todo)
    marked = (*map(named.mark, todo), *parents.values())
    return WrittenBack(to="taskmaster", where=str(file), marked=marked, same=same, ahead=ahead, missing=missing)


def _tasks(document: Any) -> Iterator[tuple[str, JsonPath, dict[str, Any]]]:
    """Each task and subtask by the names that it can have been imported under, with its path."""
    lists = lists_in(document)
    for tag, tasks in lists.items():
        path: JsonPath = (tag, "tasks") if tag else ("tasks",)
        prefixes = [f"{tag}:"] + ([""] if len(lists) == 1 or tag == "master" else [])
        for number, task in enumerate(tasks):
            if not isinstance(task, dict):
                continue
            subtasks = task.get("subtasks")
            for prefix in prefixes:
                own = f"{prefix}{task.get('id', '')}"
                yield own, (*path, number), task
                for at, sub in enumerate(subtasks if isinstance(subtasks, list) else ()):
                    if isinstance(sub, dict):
                        yield f"{own}.{sub.get('id', '')}", (*path, number, "subtasks", at), sub


def _is_done(task: Mapping[str, Any]) -> bool:
    return fate(str(task.get("status", ""))) is Fate.DONE


def _finished_parents(
    document: Any, tasks: Mapping[str, tuple[JsonPath, dict[str, Any]]], todo: Iterable[str]
) -> dict[JsonPath, Mark]:
    """Tasks whose last open subtask is done now. They are no stories themselves, and other tasks wait for them."""
    now_done = {tasks[own][0] for own in todo}
    found = {}
    for path in dict.fromkeys(path[:-2] for path in now_done if path[-2] == "subtasks"):
        task: Any = document
        for step in path:
            task = task[step]
        rest = (sub for at, sub in enumerate(task["subtasks"]) if (*path, "subtasks", at) not in now_done)
        is_over = all(isinstance(sub, dict) and fate(str(sub.get("status", ""))) in _OVER for sub in rest)
        if is_over and not _is_done(task):
            found[path] = Mark(str(task.get("id", "")), "", str(task.get("title", "")), "its subtasks are done")
    return found


_OVER = (Fate.DONE, Fate.GONE)


def _with_done(data: bytes, path: JsonPath) -> bytes:
    """The JSON value with `"done"` at this path, and every other byte as it was."""
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        array = Array.of(data)
        array.items[step] = _with_done(array.items[step], rest)
        return array.join()
    whole = Object.of(data)
    member = whole.get(step)
    if member and rest:
        member.value = _with_done(member.value, rest)
    else:
        whole.set(step, b'"done"', style_of(whole))
    return whole.join()


def _read(file: Path, tool: str) -> bytes:
    if not file.is_file():
        raise UsageError(f"{file} does not exist", hint=f"name the file of {tool} with --to FILE")
    return read_bytes(file)


def _write(file: Path, data: bytes, job: _Job, todo: list[str]) -> None:
    if job.dry or not todo:
        return
    try:
        write_bytes(file, data)
    except OSError as error:
        raise SetupError(f"could not write {file}: {error.strerror}", hint="nothing was changed") from None


_TARGETS: dict[str, Callable[[_Job], WrittenBack]] = {
    "github": _to_github,
    "beads": _to_beads,
    "taskmaster": _to_taskmaster,
}
