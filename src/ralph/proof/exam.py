"""The tests of an exam: which fail, and the command that runs one file of them. Pure."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import RalphError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Plan, Story
from ralph.core.ports import Locations, PlanRef
from ralph.core.text import clean, one_line, plural, without_comments
from ralph.host.git.command import git
from ralph.host.git.repo import find_repository
from ralph.prompts.foreign import cut_middle, fenced, has_markup
from ralph.proof.acceptance import Trial, broken, new_tests, some, turned_red
from ralph.proof.files import Role, is_collected, role_of
from ralph.proof.values import FEW, named
from ralph.state.places import home

_TAKES_VALUE = frozenset("ckmopWrn") | {"rootdir", "ignore", "confcutdir", "deselect", "require", "import"}
"""Options whose value is the next word."""
_RUN = r"(?:(?:uv|poetry|pdm|hatch) run )?"
_PYTHON = rf"{_RUN}\S*python[\d.]*"
_FOCUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?:\w+=\S+ )*(?:{_PYTHON} -m |{_RUN})\S*(?:pytest|py\.test)(?: .*)?"), "{all} {file}"),
    (re.compile(rf"({_PYTHON} -m unittest)(?: .*)?"), "{1} {file}"),
    (re.compile(r"node(?: \S+)* --test(?: .*)?"), "{all} {file}"),
    (re.compile(r"(?:npx |pnpm (?:exec )?|yarn )?(?:jest|vitest run)(?: .*)?"), "{all} {file}"),
    (re.compile(r"go test(?: .*)?"), "go test -count=1 ./{folder} -run {names}"),
    (re.compile(r"cargo test(?: .*)?"), "cargo test --test {stem}"),
)
"""Check commands, and how they run one test file."""
_SHELL = lazy_pattern(r"[;&|<>`$()\n]")
_MOST_OUTPUT = 1500
_MOST_FILES = 10
TITLE = "Exam: "
"""How the titles of stories that an exam added start."""


class Finding(Struct, frozen=True):
    """A new test file with tests that fail."""

    file: str
    tests: tuple[str, ...]
    """Names, or the file where the runner reports no names."""
    command: str
    """The check that failed."""
    tail: str


class Result(Struct, frozen=True):
    findings: tuple[Finding, ...] = ()
    passed: int = 0
    objections: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def by_file(files: Iterable[str], trials: Sequence[Trial]) -> dict[str, dict[str, str]] | None:
    """Test file → its tests and how they ended. None: the runner does not report that for each file."""
    collected = [path for path in files if is_collected(path)]
    results: dict[str, dict[str, str]] = {path: {} for path in collected}
    for trial in trials:
        if turned_red(trial) and not trial.ran.tests.names:
            return None
        for name, state in new_tests(trial).items():
            path = next((path for path in collected if name.startswith(f"{path}::")), None)
            if path is None:  # also a file that cannot be loaded: it may have kept the others from running
                return None
            results[path][name] = state
    return results


def evaluate(files: Mapping[str, bytes], trials: Sequence[Trial], alone: Callable[[str], Sequence[Trial]]) -> Result:
    """`alone`: the checks with only one of the new test files."""
    collected = [path for path in files if is_collected(path)]
    if not collected:
        return Result(objections=("no new test file was written: add one that the checks run",))
    if len(collected) > _MOST_FILES:
        return Result(objections=(f"{len(collected)} new test files: write at most {_MOST_FILES}",))
    if wrong := tuple(dict.fromkeys(broken(files, trials))):
        return Result(objections=wrong)
    known = by_file(collected, trials)
    results = [_of_file(path, trials if known is not None else alone(path), known) for path in collected]
    return Result(
        findings=tuple(finding for each in results for finding in each.findings),
        passed=sum(each.passed for each in results),
        objections=tuple(objection for each in results for objection in each.objections),
        notices=tuple(notice for each in results for notice in each.notices),
    )


def _of_file(path: str, trials: Sequence[Trial], known: Mapping[str, Mapping[str, str]] | None) -> Result:
    states = known[path] if known is not None else {n: s for trial in trials for n, s in new_tests(trial).items()}
    failed = tuple(name for name, state in states.items() if state == "failed")
    red = next((trial for trial in trials if turned_red(trial)), None)
    passed = sum(state == "passed" for state in states.values())
    if red is not None and (failed or known is None):
        finding = Finding(path, failed or (path,), red.check.command, red.ran.result.tail)
        return Result((finding,), passed)
    if skipped := [name for name, state in states.items() if state == "skipped"]:
        return Result(objections=(f"skipped: {some(skipped)}",))
    counted = max((trial.ran.tests.passed - trial.before.passed for trial in trials), default=0)
    if not any(trial.ran.tests.runner for trial in trials):
        unsure = f"the checks pass with {one_line(path, 100)}, but their output does not show that it runs"
        return Result(passed=1, notices=(unsure,))
    if not states and counted <= 0:
        commands = ", ".join(named(trial.check) for trial in trials[:FEW])
        return Result(objections=(f"{commands} does not run {one_line(path, 100)}",))
    return Result(passed=passed or counted)


def focused(command: str, finding: Finding, paths: Collection[str]) -> str:
    """The check for one test file only; empty: unknown for this command. `paths`: files and folders of the project."""
    if _SHELL.search(command):
        return ""
    for pattern, form in _FOCUSED:
        if match := pattern.fullmatch(command.strip()):
            folder, _, name = finding.file.rpartition("/")
            tests = "|".join(re.escape(test.rpartition("::")[2].split("/")[0]) for test in finding.tests)
            return form.format(
                *(match[0], match[1] if match.re.groups else ""),
                all=_without_paths(match[0], paths),
                file=shlex.quote(finding.file),
                folder=shlex.quote(folder) if folder else "",
                stem=shlex.quote(name.partition(".")[0]),
                names=shlex.quote(f"^({tests})$"),
            )
    return ""


def _without_paths(command: str, paths: Collection[str]) -> str:
    """The command without the tests it names."""
    words = command.split(" ")
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if (before.startswith("-") and before.lstrip("-") in _TAKES_VALUE)
        or word.partition("::")[0].removeprefix("./").rstrip("/") not in paths
    ]
    return " ".join(kept)


def story_for(finding: Finding, verify: str) -> Story:
    """Title, description and check of a story for a failing test."""
    names = [test.rpartition("::")[2] or test for test in finding.tests]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    title = f"{TITLE}make {one_line(names[0], 80)}{more} pass"
    tail = finding.tail.strip()[-_MOST_OUTPUT:]
    output = "\n".join(f"| {line.rstrip()}" for line in tail.splitlines() if line.strip())
    lead = (
        f"{plural(len(names), 'end-to-end test')} in {finding.file} "
        f"{'fails' if len(names) == 1 else 'fail'} although every story is done. The test was written from the "
        "requirements and must not be changed; ask if it contradicts them."
    )
    description = f"{lead} `{one_line(finding.command, 100)}` ended with:\n\n{output}" if output else lead
    criteria = (f"{some(finding.tests)} passes" if len(names) == 1 else f"{some(finding.tests)} pass",)
    return Story(id="", title=title, description=description, criteria=criteria, verify=(verify,) if verify else ())


_MOST_STORIES = 40_000
_MOST_PAGE = 20_000
_MOST_INTERFACE = 16_000
_LARGEST = 500_000
_MOST_NAMED_FILES = 2_000
_READMES = ("README.md", "README.rst", "README.txt", "README")


def exam_material(ref: PlanRef, where: Locations, plan: Plan, env: Mapping[str, str]) -> str:
    return "\n\n".join(_parts(ref, where, plan, env))


def _parts(ref: PlanRef, where: Locations, plan: Plan, env: Mapping[str, str]) -> Iterator[str]:
    stories = "\n\n".join(_story(story) for story in plan.stories if not story.title.startswith(TITLE))
    told = "\n\n".join(filter(None, (_material(plan.description.strip()), stories)))
    yield f"## The stories\n\n{cut_middle(told, _MOST_STORIES)}"
    pages = [where.requirements] if where.requirements else []
    pages += sorted(where.specs.glob("*.md")) if where.specs and where.specs.is_dir() else []
    for path in pages:
        if path != where.plan and (text := _text(path)):
            yield _page(f"## {os.path.relpath(path, ref.root)}", text, _MOST_PAGE)
    readme = next((ref.root / name for name in _READMES if (ref.root / name).is_file()), None)
    if readme is not None and (text := _text(readme)):
        yield _page(f"## {readme.name}", text, _MOST_PAGE)
    if names := interface(_sources(ref.root, env), _MOST_INTERFACE):
        yield f"## Exported names\n\n{fenced(names)}"


def _story(story: Story) -> str:
    criteria = (f"- {one_line(each)}" for each in story.criteria)
    lines = [f"### {story.id}: {one_line(story.title)}", _material(story.description.strip()), *criteria]
    return "\n".join(line for line in lines if line)


def _page(heading: str, text: str, most: int) -> str:
    cut = f"\n\n({len(text) - most} characters are left out)" if len(text) > most else ""
    return f"{heading}\n\n{_material(text[:most].strip())}{cut}"


def _material(text: str) -> str:
    """Fenced if it has headings of its own: a page of the project is no part of the prompt."""
    return fenced(text) if has_markup(text) else text


def _text(path: Path) -> str:
    """Empty for a template of which only the headings are left."""
    try:
        text = clean(path.read_bytes()[: 10 * _MOST_PAGE].decode("utf-8-sig", "replace"))
    except OSError:
        return ""
    own = without_comments(text)
    return own if any(line.strip() and not line.startswith("#") for line in own.splitlines()) else ""


def _sources(root: Path, env: Mapping[str, str]) -> dict[str, bytes]:
    """The files in git that are neither tests nor documentation."""
    try:
        repository = find_repository(root, None, home(env))
        listed = git(repository, "ls-files", "-z")
    except (RalphError, OSError):
        return {}
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    wanted = [name for name in names if role_of(name) is Role.SOURCE][:_MOST_NAMED_FILES]
    files = {}
    for name in wanted:
        path = repository / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
            files[name] = path.read_bytes()
    return files


_LINES = re.MULTILINE
_SCRIPT = lazy_pattern(r"^(?:export\s+(?!\*).+|module\.exports\b.*|exports\.\w+\s*=.*)", _LINES)
_JVM = lazy_pattern(r"^\s*public\s+[^=;]+", _LINES)
_EXPORTS = {
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"), _SCRIPT),
    "go": re.compile(r"^(?:func\s+(?:\([^)]*\)\s*)?[A-Z]|type\s+[A-Z]).*", _LINES),
    "rs": re.compile(r"^\s*pub\s+(?:async\s+|const\s+|unsafe\s+)*(?:fn|struct|enum|trait|const|type)\s.*", _LINES),
    **dict.fromkeys(("java", "cs"), _JVM),
    "kt": re.compile(r"^\s*(?:fun|class|object|interface)\s.*", _LINES),
    "rb": re.compile(r"^\s*(?:def|class|module)\s.*", _LINES),
    "php": re.compile(r"^\s*(?:(?:abstract|final|public|static)\s+)*(?:class|interface|function)\s.*", _LINES),
}
"""Ending of a file → its lines that declare something public."""
_MOST_LINES = 60
_LONGEST = 160


def interface(files: Mapping[str, bytes], most: int) -> str:
    """One section per file, at most so many characters."""
    parts: list[str] = []
    left = 0
    for path, data in sorted(files.items(), key=lambda item: (item[0].count("/"), item[0])):
        lines = list(_declared(path, data.decode("utf-8", "replace")))
        if not lines:
            continue
        part = "\n".join([f"{path}:", *(f"    {line}" for line in lines[:_MOST_LINES])])
        if sum(map(len, parts)) + len(part) > most:
            left += 1
            continue
        parts.append(part)
    return "\n".join([*parts, *([f"({left} more files are left out)"] if left else [])])


def _declared(path: str, text: str) -> Iterator[str]:
    ending = path.rpartition(".")[2]
    if ending == "py":
        try:
            yield from _python(ast.parse(text).body)
        except (SyntaxError, ValueError, RecursionError):
            return
    elif ending in _EXPORTS:
        for match in _EXPORTS[ending].finditer(text):
            head = match[0].split("{")[0] if not match[0].startswith("export {") else match[0]
            yield one_line(head.strip(), _LONGEST)


def _python(body: list[ast.stmt], indent: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            signature = f"def {node.name}({ast.unparse(node.args)}){returns}{_summary(node)}"
            yield indent + one_line(signature, _LONGEST)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            bases = ", ".join(map(ast.unparse, node.bases))
            head = f"class {node.name}({bases})" if bases else f"class {node.name}"
            yield indent + one_line(head + _summary(node), _LONGEST)
            yield from _python(node.body, indent + "    ")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_public(node.target.id):
            yield f"{indent}{node.target.id}: {ast.unparse(node.annotation)}"


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _summary(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(node)
    return f" # {text.splitlines()[0]}" if text and text.strip() else ""
