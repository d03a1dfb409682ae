"""Shell lines that run checks: which runner they start, and how they can be weakened."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ralph.checks.tamper.source import word_set

_RUNNERS = word_set(
    "pytest py.test unittest nose2 tox nox jest vitest mocha ava karma cypress playwright rspec "
    "rake phpunit pest bats ctest mypy "
    "pyright basedpyright ruff flake8 pylint black isort bandit eslint tsc prettier stylelint "
    "golangci-lint rubocop phpstan psalm "
    "shellcheck coverage biome xo standard tap staticcheck nextest gotestsum hypothesis behave "
    "cucumber tsd vue-tsc svelte-check "
    "pre-commit lint-imports pyre codespell yamllint hadolint ktlint detekt checkstyle swiftlint "
    "c8 nyc pyflakes pydocstyle"
)
_WITH_SUBCOMMAND = word_set(
    "go cargo npm yarn pnpm bun deno dotnet make gmake just task mvn mvnw gradle gradlew swift "
    "composer lerna nx turbo ./gradlew ./mvnw rake"
)
_WRAPPERS = word_set("npx bunx pnpx env time sudo xvfb-run nice exec command stdbuf winpty")
_RUN_WRAPPERS = word_set("poetry uv pipenv pdm hatch rye pnpm yarn bundle bun conda")
_INTERPRETERS = word_set("python python3 python2 node bash sh zsh ruby php perl deno tsx ts-node")

_HIDING: tuple[tuple[str, str], ...] = (
    (r"\|\|\s*(?:/bin/)?true\b", "|| true"),
    (r"\|\|\s*:(?=\s|$|[\"';)])", "|| :"),
    (r"\|\|\s*(?:exit|return)\s+0\b", "|| exit 0"),
    (r"\|\|\s*(?:echo|printf)\b(?![^\n]*\b(?:exit|return|false)\b)", "|| echo"),
    (r";\s*(?:/bin/)?true\s*(?=$|[\"'\n#)])", "; true"),
    (r";\s*:\s*(?=$|[\"'\n#)])", "; :"),
    (r";\s*exit\s+0\b", "; exit 0"),
    (r"(?:^|[;&\s\"'])set\s+\+(?:e|o\s+errexit)\b", "set +e"),
    (r"^\s*exit\s+0\s*(?:#.*)?$", "exit 0"),
    (r"\bif\b.*\bthen\b.*\bexit\s+0\b", "exit 0"),
    (r"--exit-zero\b", "--exit-zero"),
    (r"--pass-?with-?no-?tests\b", "--passWithNoTests"),
    (r"--suppress-no-test-exit-code", "--suppress-no-test-exit-code"),
    (r"continue-on-error:\s*(?:true|\$\{\{)", "continue-on-error: true"),
    (r"allow_failure:\s*true", "allow_failure: true"),
    (r"-Dmaven\.test\.failure\.ignore(?!=false)", "-Dmaven.test.failure.ignore"),
    (r"\btrap\b.*\bexit\s+0\b.*\bEXIT\b", "trap … EXIT"),
    (r"\bif:\s*(?:false\b|\$\{\{\s*false\s*\}\})", "if: false"),
    (r"\bwhen:\s*(?:never|manual)\b", "when: manual"),
    (r"\bmake\s+(?:-\w*i\w*|--ignore-errors)\b", "make -i"),
)  # fmt: skip
_NARROWING: tuple[tuple[str, str], ...] = (
    (r"--ignore(?:-glob|-pattern|-path)?[= ]", "--ignore"),
    (r"--deselect\b", "--deselect"),
    (r"(?<!\S)-k[ =]?[\"'\\]*\w", "-k"),
    (r"(?<!\S)-m[ =]?[\"'\\]*not\b", "-m 'not …'"),
    (r"--collect-only\b|--co\b", "--collect-only"),
    (r"--lf\b|--last-failed\b|--sw\b|--stepwise\b", "--last-failed"),
    (r"(?<!\S)-p[ =]?no:\w+", "-p no:…"),
    (r"--noconftest\b", "--noconftest"),
    (r"--no-cov\b", "--no-cov"),
    ((r"--test(?:Path|Name)?IgnorePatterns?\b|--testNamePattern\b|--testPathPatterns?\b"
r"|--onlyChanged\b|--findRelatedTests\b"), "--testPathIgnorePatterns"),
    (r"--listTests\b|--list-tests\b", "--listTests"),
    (r"(?<!\S)-run[ =]", "-run"),
    (r"(?<!\S)-skip[ =]|(?<!\S)--skip\b", "--skip"),
    (r"(?<!\S)-short\b", "-short"),
    (r"--no-run\b", "--no-run"),
    (r"-DskipTests\b(?!=false)|-Dmaven\.test\.skip(?!=false)|-Dtest=", "-DskipTests"),
    (r"(?<!\S)-x\s+(?:\w*[tT]est|check|lint)\b", "-x test"),
    (r"--filter\b|--exclude-group\b|--exclude-pattern\b|--exclude-tag\b|--exclude\b|--extend-exclude\b", "--exclude"),
    (r"--tag\s+[\"']?~", "--tag ~"),
    (r"--(?:extend-)?ignore\b|--no-eslintrc\b|--quiet\b(?=.*eslint)|--disable(?:-error-code)?\b", "--ignore"),
    (r"--ignore-missing-imports\b|--follow-imports[= ]skip|--no-strict\w*", "--ignore-missing-imports"),
    (r"(?<=\s)--(?:dry-run|help|version)\b", "--dry-run"),
)  # fmt: skip
_HIDING_RULES = [(re.compile(pattern, re.MULTILINE | re.IGNORECASE), label) for pattern, label in _HIDING]
_NARROWING_RULES = [(re.compile(pattern), label) for pattern, label in _NARROWING]
_STRICT_FLAG = re.compile(
    r"^(?:--strict\S*|-W\S*|-Werror|--werror|-race|--max-warnings\S*|--cov-fail-under\S*"
    r"|--fail-under\S*|--all|--workspace|--all-targets"
    r"|--all-features|-D|warnings|--check|--ci|--coverage|--cov\S*|--frozen-lockfile"
    r"|--error-on-warnings|--no-cache-dir|--runslow)$"
)
_PIPED = re.compile(r"[^|]\|\s*(?:tee|cat|tail|head|grep|sed|awk|less)\b")
_NUMBER_FLAG = re.compile(
    r"--(?P<name>cov-fail-under|fail-under|max-warnings|coverageThreshold)[= ](?P<value>\d+(?:\.\d+)?)"
)


class Weakness(Struct, frozen=True):
    code: str
    message: str
    line: str
    """The line of the new version to point at; '' for a removed one."""
    runner: str = ""
    """What is no longer run."""


def hides(line: str) -> str:
    """What hides a failure of this line, or ''."""
    for pattern, label in _HIDING_RULES:
        if pattern.search(line):
            return label
    return ""


def narrows(line: str) -> str:
    """The option that excludes tests or rules, or ''."""
    if not starts_runner(line):
        return ""
    return next((label for pattern, label in _NARROWING_RULES if pattern.search(line)), "")


def narrowing_option(options: str) -> str:
    """Like `narrows`, for options alone (`addopts`)."""
    return next((label for pattern, label in _NARROWING_RULES if pattern.search(options)), "")


def words_of_line(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=False, posix=True)
    except ValueError:
        return line.split()


_SEPARATOR = re.compile(r"&&|\|\||[;\n|]|(?<!&)&(?!&)")


def simple_commands(line: str) -> Iterator[list[str]]:
    for part in _SEPARATOR.split(line):
        if words := words_of_line(part.strip()):
            yield words


def runner_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """The check a command runs, and its arguments; '' for other commands."""
    rest = list(words)
    while rest:
        first = rest[0].rsplit("/", 1)[-1] if not rest[0].startswith("./gradlew") else "gradlew"
        if re.fullmatch(r"\w+=.*", rest[0]) or first in _WRAPPERS or rest[0] in ("@", "-", "!", "cross-env"):
            rest = rest[1:]
        elif first == "timeout":
            rest = rest[2:]
        elif first in _RUN_WRAPPERS and len(rest) > 1 and rest[1] in ("run", "exec", "dlx"):
            if first in ("yarn", "pnpm", "bun") and rest[1] == "run":
                return f"{first} {' '.join(rest[2:3])}", rest[3:]
            rest = [word for word in rest[2:] if word != "--"]
        elif (variable := re.fullmatch(r"\$[({]?(\w+)[)}]?", rest[0])) and variable[
            1
        ].lower() in _RUNNERS | _INTERPRETERS | {"py"}:
            rest = ["python" if variable[1].lower() == "py" else variable[1].lower(), *rest[1:]]
        elif first in _INTERPRETERS:
            return _interpreted(rest)
        elif first in _RUNNERS:
            return first, rest[1:]
        elif first in _WITH_SUBCOMMAND:
            at = 2 if rest[1:2] == ["run"] else 1
            return f"{first} {' '.join(rest[at : at + 1])}".strip(), rest[at + 1 :]
        elif rest[0].startswith(("./", "scripts/", "bin/", "tools/", "ci/", ".ci/")) or rest[0].endswith(
            (".sh", ".py")
        ):
            return rest[0].removeprefix("./"), rest[1:]
        else:
            return "", []
    return "", []


def _interpreted(rest: list[str]) -> tuple[str, list[str]]:
    if "-m" in rest[1:4]:
        at = rest.index("-m")
        return runner_of(rest[at + 1 :]) if rest[at + 1 : at + 2] != ["coverage"] else ("coverage", rest[at + 2 :])
    script = next((word for word in rest[1:] if not word.startswith("-")), "")
    return (script.removeprefix("./"), rest[rest.index(script) + 1 :]) if script else ("", [])


def starts_runner(line: str) -> bool:
    return any(runner_of(words)[0] for words in simple_commands(line.strip().lstrip("@-").strip("\"'")))


def weaknesses(old: Sequence[str], new: Sequence[str]) -> Iterator[Weakness]:
    """How the lines of a check became weaker. Unchanged lines are ignored."""
    added = [line for line in new if line not in old]
    lost = [line for line in old if line not in new]
    whole = "\n".join(new)
    for line in added:
        before = _closest(line, lost)
        if (label := hides(line)) and not hides(before) and not _is_usage(line):
            yield Weakness("failure-hidden", f"`{label}` hides a failure: {line.strip()[:80]}", line)
        elif starts_runner(line) and _PIPED.search(line) and not _PIPED.search(before) and "pipefail" not in whole:
            yield Weakness("failure-hidden", f"a pipe hides a failure: {line.strip()[:80]}", line)
        elif (label := narrows(line)) and label != narrows(before):
            yield Weakness("tests-narrowed", f"`{label}` excludes something: {line.strip()[:80]}", line)
    yield from _lost_runners(lost, added, new)


def _is_usage(line: str) -> bool:
    return re.search(r"(?i)help|usage|version", line) is not None


def _closest(line: str, candidates: Sequence[str]) -> str:
    words = set(line.split())
    return max(candidates, key=lambda other: len(words & set(other.split())), default="")


def _started(lines: Sequence[str]) -> list[tuple[str, list[str], str]]:
    found = []
    for line in lines:
        for words in simple_commands(line.strip().lstrip("@-").strip("\"'")):
            runner, args = runner_of(words)
            if runner:
                found.append((runner, args, line))
    return found


def _lost_runners(lost: Sequence[str], added: Sequence[str], new: Sequence[str]) -> Iterator[Weakness]:
    now = _started(added)
    everywhere = {runner for runner, _, _ in _started(new)}
    for runner, args, line in _started(lost):
        others = [(more, text) for name, more, text in now if name == runner]
        if not others:
            if runner not in everywhere:
                yield Weakness("check-removed", f"`{runner}` is no longer run (was: {line.strip()[:80]})", "", runner)
            continue
        for more, text in others[:1]:
            yield from _weaker_arguments(runner, args, more, text)


def _weaker_arguments(runner: str, old: list[str], new: list[str], line: str) -> Iterator[Weakness]:
    dropped = [word for word in old if word not in new and _STRICT_FLAG.match(word.split("=")[0])]
    thresholds = {match["name"]: float(match["value"]) for match in _NUMBER_FLAG.finditer(" ".join(old))}
    for match in _NUMBER_FLAG.finditer(" ".join(new)):
        before, now = thresholds.pop(match["name"], None), float(match["value"])
        dropped = [word for word in dropped if match["name"] not in word]
        if before is not None and (now > before if match["name"] == "max-warnings" else now < before):
            yield Weakness("coverage-loosened", f"--{match['name']} changed from {before:g} to {now:g}", line)
    if dropped:
        yield Weakness("check-edited", f"`{runner}` runs without {' '.join(dropped)}: {line.strip()[:80]}", line)
    places, now_places = _places(old), _places(new)
    fewer = (not places and now_places) or (places and now_places and now_places < places)
    inside = places and any(
        q != p and q.startswith(p.rstrip("/.").rstrip("/") + "/") for p in places for q in now_places - places
    )
    if fewer or (inside and not places <= now_places):
        yield Weakness("tests-narrowed", f"`{runner}` checks less than before: {line.strip()[:80]}", line)


_TAKES_VALUE = frozenset(
    [
        "-k",
        "-m",
        "-p",
        "-o",
        "-c",
        "-n",
        "-W",
        "-t",
        "-r",
        "-C",
        "-f",
        "--config",
        "--cov",
        "--rootdir",
        "--junitxml",
        "--project",
    ]
)


def _places(args: Sequence[str]) -> set[str]:
    """Arguments that are files or folders."""
    found = set()
    for at, word in enumerate(args):
        is_value = at > 0 and args[at - 1] in _TAKES_VALUE
        if is_value or word.startswith(("-", "$", "{", ">", "<")) or "=" in word:
            continue
        if "/" in word or "." in word or "test" in word.lower():
            found.add(word.removeprefix("./"))
    return found


class Used(Struct, frozen=True):
    """What the check commands name: files, make targets, package scripts, programs."""

    words: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()

    def names(self, path: str) -> bool:
        return any(
            word == path or word.endswith("/" + path) or (path.endswith("/" + word) and "." in word)
            for word in self.words
        )


_CONVENTIONAL = word_set(
    "test tests check checks lint verify ci typecheck type-check types coverage cov unit "
    "integration e2e all default quality"
)


def used_by(commands: Sequence[str]) -> Used:
    words: set[str] = set()
    targets: set[str] = set(_CONVENTIONAL)
    programs: set[str] = set()
    for command in commands:
        for simple in simple_commands(command):
            plain = [word for word in simple if not re.fullmatch(r"\w+=.*", word)]
            words |= {word.removeprefix("./") for word in plain}
            targets |= {word for word in plain[1:] if re.fullmatch(r"[\w.:-]+", word) and not word.startswith("-")}
            if plain:
                programs.add(plain[0].rsplit("/", 1)[-1])
    return Used(frozenset(words), frozenset(targets), frozenset(programs))
