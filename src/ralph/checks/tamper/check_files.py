"""Files that run the checks: CI, make targets, package scripts, scripts named by a check command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralph.checks.tamper.commands import Used, Weakness, starts_runner, weaknesses
from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.paths import is_collected, is_golden, language_of
from ralph.checks.tamper.settings import settings_of
from ralph.checks.tamper.values import Finding

_CI = re.compile(
    r"(?:^|/)(?:\.github/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.gitlab/ci/.+|\.circleci/.+"
    r"|azure-pipelines[\w.-]*\.ya?ml|Jenkinsfile[\w.-]*"
    r"|\.travis\.ya?ml|bitbucket-pipelines\.ya?ml|\.buildkite/.+|\.drone\.ya?ml"
    r"|\.woodpecker[\w/.-]*|appveyor\.ya?ml|\.cirrus\.ya?ml)$"
)
_HOOK = re.compile(r"(?:^|/)(?:\.husky/[\w-]+|lefthook\.ya?ml|\.githooks/.+)$")
_MAKE = re.compile(r"(?:^|/)(?:GNUm|M|m)akefile$|\.mk$|(?:^|/)[Jj]ustfile$")
_TASKS = re.compile(
    r"(?:^|/)(?:Taskfile\.ya?ml|noxfile\.py|Rakefile|tasks\.py|dodo\.py|fabfile\.py|Gruntfile\.js|gulpfile\.js)$"
)
_SCRIPT_FOLDER = re.compile(
    r"(?:^|/)(?:scripts?|bin|tools?|ci|\.ci|hack|dev|build|etc)/[^/]+$|^[^/]+\.(?:sh|bash)$|^[\w-]+$"
)
_CHECK_NAME = re.compile(
    r"(?i)(?:^|[_.-])(?:run)?[_.-]?(?:tests?|checks?|lint|verify|ci|coverage|quality|typecheck"
    r"|validate|presubmit)(?:[_.-]|$)"
)
_CODE_HIDES = re.compile(
    r"\b(?:sys\.|os\._|process\.)?exit\(\s*0?\s*\)|\bos\._exit\(|\braise\s+SystemExit\(\s*0?\s*\)"
    r"|\bexcept\b[^\n]*:\s*pass\b"
)


def is_ci(path: str) -> bool:
    return _CI.search(path) is not None


def is_check_script(path: str, used: Used) -> bool:
    """A script that a check command names, or that is named like a check."""
    if used.names(path):
        return True
    name = path.rsplit("/", 1)[-1]
    is_script = language_of(path) in ("shell", "python", "javascript", "ruby") or "." not in name
    return is_script and _SCRIPT_FOLDER.search(path) is not None and _CHECK_NAME.search(name) is not None


def check_file_findings(
    path: str, old: str | None, new: str | None, used: Used, evidence: Evidence
) -> Iterator[Finding]:
    if is_ci(path) or _HOOK.search(path):
        yield from _ci(path, old, new, evidence)
    elif _MAKE.search(path):
        yield from _make(path, old, new, used, evidence)
    elif path.rsplit("/", 1)[-1] in ("package.json", "composer.json"):
        yield from _scripts(path, old, new, used, evidence)
    elif is_golden(path):
        return
    elif _TASKS.search(path) or is_check_script(path, used):
        yield from _script(path, old, new, used, evidence)


def _told(path: str, text: str, found: Iterator[Weakness], excused: bool, evidence: Evidence) -> Iterator[Finding]:
    for weakness in found:
        replaced = bool(weakness.runner) and evidence.story.relaxes(re.escape(weakness.runner.split()[0]))
        severity = high_unless(excused or replaced)
        yield Finding(weakness.code, path, _line(text, weakness.line), weakness.message, severity)


def _line(text: str, line: str) -> int:
    if not line:
        return 1
    return next((number for number, other in enumerate(text.split("\n"), 1) if line.strip() in other), 1)


_YAML_PREFIX = re.compile(
    r"^\s*(?:-\s+)*(?:(?:run|script|command|cmd|sh|entry|args|before_script|after_script)\s*:\s*[|>]?[+-]?\s*)?"
)


def _ci_lines(text: str) -> list[str]:
    lines = (line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    return [stripped for line in lines if (stripped := _YAML_PREFIX.sub("", line).strip())]


def _ci(path: str, old: str | None, new: str | None, evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.story.works_on(
        r"ci", r"workflows?", r"pipelines?", r"github actions?", r"gitlab", r"build jobs?", re.escape(path), r"jobs?"
    )
    if old is None:
        if new is not None:
            yield from _told(
                path, new, (w for w in weaknesses([], _ci_lines(new)) if w.code == "failure-hidden"), True, evidence
            )
        return
    if new is None:
        if any(starts_runner(line) for line in _ci_lines(old)):
            yield Finding("check-removed", path, 1, f"{path} was removed, with its checks", high_unless(asked))
        return
    before, after = _ci_lines(old), _ci_lines(new)
    findings = list(_told(path, new, weaknesses(before, after), asked, evidence))
    yield from findings
    if before != after and not findings:
        yield Finding("ci-edited", path, _first_difference(old, new), f"{path} was changed", "low")


def _first_difference(old: str, new: str) -> int:
    pairs = zip(old.split("\n"), new.split("\n"), strict=False)
    return next((number for number, (one, two) in enumerate(pairs, 1) if one != two), 1)


_TARGET = re.compile(r"^(?P<names>[\w./%$(){} -]+?)\s*(?P<sign>::?)(?!=)(?P<needs>[^=#]*)(?:#.*)?$")
_VARIABLE = re.compile(r"^\s*(?:export\s+)?[\w.-]+\s*(?:\?|:|\+|!)?=")


def _targets(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]], list[str]]:
    """Recipes, prerequisites, and everything outside them."""
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    outside: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith(("\t", "    ")) and current:
            for name in current:
                recipes[name].append(line.strip())
        elif _VARIABLE.match(line):
            outside.append(line.strip())
        elif match := _TARGET.match(line):
            current = (
                match["names"].split()[:1]
                if " " in match["names"] and "justfile" in text[:0]
                else match["names"].split()
            )
            for name in current:
                recipes.setdefault(name, [])
                needs.setdefault(name, []).extend(match["needs"].split())
        elif line.strip() and not line.startswith("#"):
            outside.append(line.strip())
    return recipes, needs, outside


def _make(path: str, old: str | None, new: str | None, used: Used, evidence: Evidence) -> Iterator[Finding]:
    if old is None:
        return
    asked = evidence.story.works_on(r"makefile", r"justfile", r"make targets?", r"build")
    recipes, needs, outside = _targets(old)
    wanted = _closure(used.targets & recipes.keys(), needs)
    if new is None:
        if wanted:
            yield Finding(
                "check-removed", path, 1, f"{path} was removed, with {', '.join(sorted(wanted))}", high_unless(asked)
            )
        return
    now, now_needs, now_outside = _targets(new)
    changed = False
    for target in sorted(wanted):
        before = [*recipes.get(target, []), *(f"make {need}" for need in needs.get(target, []))]
        after = [*now.get(target, []), *(f"make {need}" for need in now_needs.get(target, []))]
        if before == after:
            continue
        changed = True
        findings = list(_told(path, new, weaknesses(before, after), asked, evidence))
        ignored = [line for line in after if re.match(r"@?-", line) and line not in before]
        findings += [
            Finding(
                "failure-hidden", path, _line(new, line), f"make ignores a failure of `{line[:60]}`", high_unless(asked)
            )
            for line in ignored
        ]
        if target not in now:
            findings.append(Finding("check-removed", path, 1, f"target {target} was removed", high_unless(asked)))
        yield from findings
        if not findings:
            line = _line(new, f"{target}:")
            yield Finding("check-edited", path, line, f"target {target}, used by the checks, was changed", "low")
    if outside != now_outside:
        yield from _told(path, new, weaknesses(_values(outside), _values(now_outside)), asked, evidence)
        if ".IGNORE:" in new and ".IGNORE:" not in old:
            yield Finding("failure-hidden", path, _line(new, ".IGNORE:"), "make ignores failures (.IGNORE)", "high")
    if changed or ".IGNORE" not in now or ".IGNORE" in recipes:
        return
    yield Finding("failure-hidden", path, _line(new, ".IGNORE"), "make ignores failures (.IGNORE)", "high")


def _values(lines: Sequence[str]) -> list[str]:
    """Values of variables: `PYTEST = true` is a command as well."""
    return [re.sub(_VARIABLE, "", line).strip() for line in lines]


def _closure(targets: frozenset[str] | set[str], needs: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(targets)
    while todo:
        target = todo.pop()
        if target not in found:
            found.add(target)
            todo += [need for need in needs.get(target, []) if need in needs]
    return found


def _scripts(path: str, old: str | None, new: str | None, used: Used, evidence: Evidence) -> Iterator[Finding]:
    if old is None or new is None:
        return
    asked = evidence.story.works_on(r"package\.json", r"npm scripts?", r"composer\.json", r"build scripts?")
    before, after = settings_of(path, old), settings_of(path, new)
    for key, setting in before.items():
        section, _, name = key.partition(".")
        base = re.sub(r"^(?:pre|post)", "", name)
        is_used = (
            name in used.targets
            or base in used.targets
            or name.split(":")[0] in used.targets
            or starts_runner(" ".join(setting.values))
        )
        if section != "scripts" or not is_used:
            continue
        now = after.get(key)
        if now is None:
            gone = [f"npm run {name}"] if starts_runner(" ".join(setting.values)) else []
            if gone and name in used.targets:
                yield Finding("check-removed", path, 1, f"script {name} was removed", high_unless(asked))
        elif now.values != setting.values:
            findings = list(_told(path, new, weaknesses(setting.values, now.values), asked, evidence))
            yield from findings
            if not findings:
                yield Finding("check-edited", path, now.line, f"script {name}, used by the checks, was changed", "low")
    for key, setting in after.items():
        name = key.partition(".")[2]
        hidden = (
            key.startswith("scripts.")
            and re.match(r"(?:pre|post)", name)
            and name[3 if name[2] == "e" else 4 :] in used.targets
        )
        if hidden and key not in before:
            yield Finding(
                "check-edited", path, setting.line, f"{name} runs before or after a script that the checks use", "low"
            )


def _script(path: str, old: str | None, new: str | None, used: Used, evidence: Evidence) -> Iterator[Finding]:
    named = used.names(path)
    asked = evidence.story.names_file(path)
    if old is None:
        return
    if new is None:
        if named or any(starts_runner(line) for line in old.split("\n")):
            yield Finding("check-removed", path, 1, f"{path}, used by the checks, was removed", high_unless(asked))
        return
    before, after = _code_lines(old), _code_lines(new)
    if before == after:
        return
    is_shell = language_of(path) in ("shell", "") and not old.startswith(("#!/usr/bin/env python", "#!/usr/bin/python"))
    findings = (
        list(_told(path, new, weaknesses(before, after), asked, evidence))
        if is_shell
        else list(_code(path, before, after, new, asked))
    )
    yield from findings
    if not findings:
        lost = [line for line in before if line not in after]
        severity = high_unless(not (named and lost) or asked or is_collected(path))
        line = _first_difference(old, new)
        yield Finding("check-edited", path, line, f"{path}, used by the checks, was changed", severity)


def _code_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip() and not line.lstrip().startswith(("#", "//"))]


def _code(path: str, before: Sequence[str], after: Sequence[str], new: str, asked: bool) -> Iterator[Finding]:
    for line in after:
        if line not in before and _CODE_HIDES.search(line):
            yield Finding(
                "failure-hidden",
                path,
                _line(new, line),
                f"a failure is hidden: {line.strip()[:80]}",
                high_unless(asked),
            )
    old_words, new_words = _runner_words(before), _runner_words(after)
    for word in sorted(old_words - new_words):
        yield Finding("check-removed", path, 1, f"`{word}` is no longer run", high_unless(asked))


_QUOTED_RUNNER = re.compile(
    r"[\"'\s(\[](pytest|mypy|ruff|flake8|eslint|jest|vitest|mocha|tsc|pylint|coverage|unittest|tox|bandit)\b"
)


def _runner_words(lines: Sequence[str]) -> set[str]:
    return {match for line in lines for match in _QUOTED_RUNNER.findall(line)}
