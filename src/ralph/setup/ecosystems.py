"""Kinds of project: one function each, which maps the files of a folder to the commands that check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from ralph.setup.project_files import Folder, as_json, as_toml, at


class Found(Struct, frozen=True):
    """What one kind of project proposes for one folder."""

    role: str
    """`test`, `lint`, `types` or `check`."""
    command: str
    why: str
    file: str


RUNNERS = ("just", "make")
"""Kinds whose commands the project's authors named, the preferred one first."""

_LONGEST_SCRIPT = 2000
_TYPES = ("typecheck", "type-check", "types", "check-types", "check:types")


def make(folder: Folder) -> Iterator[Found]:
    name = folder.has("GNUmakefile", "makefile", "Makefile")
    targets: set[str] = set()
    for line in folder.text(name).splitlines():
        names, colon, rest = line.partition(":")
        if colon and not line.startswith(("\t", "#")) and not rest.startswith(("=", ":=")):
            targets.update(names.split())
    yield from _targets(targets, "make", name)


def just(folder: Folder) -> Iterator[Found]:
    name = folder.has("justfile", "Justfile", ".justfile")
    # A recipe whose parameters have no default cannot be run by its name alone.
    default = r"""[ \t]+\*?\$?[\w-]+=(?:'[^']*'|"[^"]*"|[^\s:]+)|[ \t]+\*\$?[\w-]+"""
    recipe = rf"^@?([A-Za-z0-9_-]+)(?:{default})*[ \t]*:(?!=)"
    targets = {m[1] for m in re.finditer(recipe, folder.text(name), re.MULTILINE)}
    yield from _targets(targets, "just", name)


def _targets(targets: set[str], tool: str, file: str) -> Iterator[Found]:
    why = f"the {'recipe' if tool == 'just' else 'target'} is defined"
    for role, names in (("test", ("test", "tests")), ("lint", ("lint",)), ("types", _TYPES)):
        if target := next((n for n in names if n in targets), ""):
            yield Found(role, f"{tool} {target}", why, file)
    if "check" in targets and not targets & {"test", "tests", "lint"}:
        yield Found("check", f"{tool} check", why, file)


def python(folder: Folder) -> Iterator[Found]:
    project = as_toml(folder, "pyproject.toml") if folder.has("pyproject.toml") else {}
    file = folder.has(
        "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "tox.ini", "noxfile.py", "manage.py"
    )
    if not file and not folder.path:  # a script with its tests, without any configuration
        file = next((name for here in _test_folders(folder) for name in sorted(here.names) if _is_test(name)), "")
    if not file:
        return
    run = _PythonTools(folder, project)
    needs = _python_needs(folder, project)
    ini = folder.text("setup.cfg") + "\n" + folder.text("tox.ini")
    yield from _python_tests(folder, project, needs, ini, run, file)
    if at(project, "tool", "ruff") is not None or folder.has("ruff.toml", ".ruff.toml") or "ruff" in needs:
        yield Found("lint", f"{run('ruff')} check", "ruff is configured", folder.has("ruff.toml", ".ruff.toml") or file)
    elif folder.has(".flake8") or "[flake8]" in ini or "flake8" in needs:
        yield Found("lint", run("flake8"), "flake8 is configured", folder.has(".flake8") or file)
    mypy = at(project, "tool", "mypy")
    if mypy is not None or folder.has("mypy.ini", ".mypy.ini") or "[mypy]" in ini or "mypy" in needs:
        own = folder.text("mypy.ini") + folder.text(".mypy.ini") + ini
        told = at(mypy, "files") or at(mypy, "packages") or re.search(r"^(files|packages)\s*=", own, re.MULTILINE)
        yield Found(
            "types", run("mypy") if told else f"{run('mypy')} .", "mypy is configured", folder.has("mypy.ini") or file
        )
    elif at(project, "tool", "pyright") is not None or folder.has("pyrightconfig.json") or "pyright" in needs:
        yield Found("types", run("pyright"), "pyright is configured", folder.has("pyrightconfig.json") or file)


def _python_tests(
    folder: Folder, project: object, needs: set[str], ini: str, run: _PythonTools, file: str
) -> Iterator[Found]:
    tests = folder.inside("tests") | folder.inside("test")
    start = run("python") if run("python") != "python" else "python3"
    if (
        at(project, "tool", "pytest") is not None
        or folder.has("pytest.ini", ".pytest.ini", "conftest.py")
        or "conftest.py" in tests
        or re.search(r"^\[(tool:)?pytest\]", ini, re.MULTILINE)
        or "pytest" in needs
    ):
        yield Found("test", run("pytest"), "pytest is configured", folder.has("pytest.ini") or file)
    elif folder.has("tox.ini") or at(project, "tool", "tox") is not None:
        yield Found("test", run("tox"), "tox is configured", folder.has("tox.ini") or file)
    elif folder.has("noxfile.py"):
        yield Found("test", run("nox"), "nox is configured", "noxfile.py")
    elif folder.has("manage.py"):
        yield Found("test", f"{start} manage.py test", "it is a Django project", "manage.py")
    elif found := [(here, name) for here in _test_folders(folder) for name in sorted(here.names) if _is_test(name)]:
        here, name = found[0]
        where = f"{here.path.removeprefix(folder.path).lstrip('/')}/" if here is not folder else ""
        if run.has("pytest") or any(_PYTEST_STYLE.search(each.text(file)) for each, file in found[:_MOST_TESTS]):
            yield Found("test", run("pytest"), f"{where or 'the project'} has pytest tests", f"{where}{name}")
        else:
            options = f" -s {where[:-1]}" if where else ""
            options += " -t ." if where and "__init__.py" in here.names else ""
            if not any(file.startswith("test") for each, file in found if each is here):  # unittest looks for test*.py
                options += " -p '*_test.py'"
            command = f"{start} -m unittest" + (f" discover{options}" if options else "")
            yield Found("test", command, f"{where or 'the project'} has unit tests", f"{where}{name}")
    elif run.has("pytest") and (where := folder.has("tests/", "test/")):
        yield Found("test", run("pytest"), "pytest is installed", where)


def _test_folders(folder: Folder) -> list[Folder]:
    """Also packages that have their tests inside, as modules or in a package `tests`."""
    packages = [below for name in sorted(folder.names) if name.endswith("/") and (below := _package(folder, name))]
    inside = [each.below("tests") for each in packages if each.has("tests/")]
    return [*(folder.below(name) for name in ("tests", "test") if folder.has(f"{name}/")), folder, *packages, *inside]


def _package(folder: Folder, name: str) -> Folder | None:
    below = folder.below(name[:-1])
    return below if name not in ("tests/", "test/") and "__init__.py" in below.names else None


def _is_test(name: str) -> bool:
    return _PYTHON_TEST.fullmatch(name) is not None


_PYTHON_TEST = re.compile(r"test_.*\.py|.*_test\.py")
_PYTEST_STYLE = re.compile(r"^(?:async )?def test_|^import pytest\b|^from pytest\b", re.MULTILINE)
"""unittest does not run functions outside a class."""
_MOST_TESTS = 20


class _PythonTools:
    """How to start a Python program of the project: by its package manager, from its virtualenv, or by name."""

    def __init__(self, folder: Folder, project: object) -> None:
        self._manager = _python_manager(folder, project)
        self._bin = {name: folder.inside(f"{name}/bin") for name in (".venv", "venv") if folder.has(f"{name}/")}

    def has(self, program: str) -> bool:
        return any(program in programs for programs in self._bin.values())

    def __call__(self, program: str) -> str:
        if self._manager:
            return f"{self._manager} run {program}"
        return next((f"{name}/bin/{program}" for name, programs in self._bin.items() if program in programs), program)


def _python_manager(folder: Folder, project: object) -> str:
    locks = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
    if lock := folder.has(*locks):
        return locks[lock]
    return next((tool for tool in ("uv", "poetry", "pdm") if at(project, "tool", tool) is not None), "")


def _python_needs(folder: Folder, project: object) -> set[str]:
    """Names of the packages the project depends on, in any group."""
    lists: list[object] = [at(project, "project", "dependencies"), at(project, "tool", "uv", "dev-dependencies")]
    tables = [at(project, "project", "optional-dependencies"), at(project, "dependency-groups")]
    lists += [group for table in tables if isinstance(table, dict) for group in table.values()]
    found = [item for group in lists if isinstance(group, list) for item in group if isinstance(item, str)]
    poetry = at(project, "tool", "poetry")
    groups = at(poetry, "group")
    nested = [at(group, "dependencies") for group in groups.values()] if isinstance(groups, dict) else []
    for table in (at(poetry, "dependencies"), at(poetry, "dev-dependencies"), *nested):
        found += list(table) if isinstance(table, dict) else []
    for name in sorted(folder.names):
        if re.fullmatch(r"requirements[\w.-]*\.txt", name):
            found += folder.text(name).splitlines()
    return {m[0].lower() for item in found if (m := re.match(r"[A-Za-z0-9_.-]+", item))}


def node(folder: Folder) -> Iterator[Found]:
    if not folder.has("package.json"):
        return
    package = as_json(folder, "package.json")
    raw = package.get("scripts")
    texts = raw.items() if isinstance(raw, dict) else ()
    scripts = {k: v[:_LONGEST_SCRIPT] for k, v in texts if isinstance(v, str) and v.strip()}
    tool = _node_tool(folder, package)
    for name in ("test", "test:ci", "test:run", "test:unit"):
        if name in scripts and (command := _node_test(folder, tool, name, scripts[name])):
            yield Found("test", command, f"scripts.{name} is defined", "package.json")
            break
    if "lint" in scripts:
        yield Found("lint", f"{tool} run lint", "scripts.lint is defined", "package.json")
    if name := next((n for n in _TYPES if n in scripts), ""):
        yield Found("types", f"{tool} run {name}", f"scripts.{name} is defined", "package.json")
    elif folder.has("tsconfig.json") and any(at(package, k, "typescript") for k in ("devDependencies", "dependencies")):
        start = {"npm": "npx --no-install", "pnpm": "pnpm exec", "yarn": "yarn", "bun": "bun x"}[tool]
        yield Found("types", f"{start} tsc --noEmit", "TypeScript is configured", "tsconfig.json")


def _node_tool(folder: Folder, package: Mapping[str, object]) -> str:
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    if lock := folder.has(*locks, "package-lock.json"):
        return locks.get(lock, "npm")
    named = str(package.get("packageManager", "")).split("@")[0]
    return named if named in ("pnpm", "yarn", "bun") else "npm"


def _node_test(folder: Folder, tool: str, name: str, script: str) -> str:
    """A command that exits. Empty for npm's placeholder and for scripts that watch for changes."""
    if "no test specified" in script:
        return ""
    if re.search(r"--watch(All)?(?!\S*=false)(?=\s|=true|$)", script):
        folder.warn("package.json", f"scripts.{name} watches for changes and would never exit")
        return ""
    # `bun test` is bun's own runner, not the script.
    command = f"{tool} test" if name == "test" and tool != "bun" else f"{tool} run {name}"
    if "react-scripts test" in script:
        return f"CI=true {command}"
    if re.search(r"\bng test\b", script) and "--watch" not in script:
        return f"{command} {'' if tool == 'yarn' else '-- '}--watch=false"
    return command


def go(folder: Folder) -> Iterator[Found]:
    file = folder.has("go.mod")
    if not file:
        return
    yield Found("test", "go test ./...", "it is a Go module", file)
    if own := folder.has(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"):
        yield Found("lint", "golangci-lint run", "golangci-lint is configured", own)
    else:
        yield Found("lint", "go vet ./...", "it is a Go module", file)


def rust(folder: Folder) -> Iterator[Found]:
    if not folder.has("Cargo.toml"):
        return
    manifest = as_toml(folder, "Cargo.toml")
    everything = " --workspace" if at(manifest, "workspace") is not None else ""
    yield Found("test", f"cargo test{everything}", "it is a Rust package", "Cargo.toml")
    lints = at(manifest, "lints", "clippy") or at(manifest, "workspace", "lints", "clippy")
    if lints or folder.has("clippy.toml", ".clippy.toml"):
        yield Found("lint", f"cargo clippy{everything} --all-targets", "clippy is configured", "Cargo.toml")


def ruby(folder: Folder) -> Iterator[Found]:
    if not folder.has("Gemfile"):
        return
    gems = set(re.findall(r"""^[ \t]*gem[ \t(]*["']([^"'\n]+)""", folder.text("Gemfile"), re.MULTILINE))
    if folder.has(".rspec", "spec/") or any(gem.startswith("rspec") for gem in gems):
        yield Found("test", "bundle exec rspec", "rspec is configured", folder.has(".rspec") or "Gemfile")
    elif folder.has("bin/") and "rails" in folder.inside("bin"):
        yield Found("test", "bin/rails test", "it is a Rails application", "Gemfile")
    elif folder.has("Rakefile") and folder.has("test/"):
        yield Found("test", "bundle exec rake test", "test/ and a Rakefile exist", "Rakefile")
    if folder.has(".rubocop.yml") or any(gem.startswith("rubocop") for gem in gems):
        yield Found("lint", "bundle exec rubocop", "rubocop is configured", folder.has(".rubocop.yml") or "Gemfile")


def php(folder: Folder) -> Iterator[Found]:
    if not folder.has("composer.json"):
        return
    scripts = at(as_json(folder, "composer.json"), "scripts")
    named = set(scripts) if isinstance(scripts, dict) else set()
    phpunit = folder.has("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    phpstan = folder.has("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon")
    if "test" in named:
        yield Found("test", "composer test", "scripts.test is defined", "composer.json")
    elif phpunit:
        yield Found("test", "vendor/bin/phpunit", "PHPUnit is configured", phpunit)
    if "lint" in named:
        yield Found("lint", "composer lint", "scripts.lint is defined", "composer.json")
    if phpstan:
        yield Found("types", "vendor/bin/phpstan analyse", "PHPStan is configured", phpstan)


def java(folder: Folder) -> Iterator[Found]:
    if folder.has("pom.xml"):
        start = "./mvnw" if folder.has("mvnw") else "mvn"
        yield Found("test", f"{start} -B test", "it is a Maven project", "pom.xml")
    elif file := folder.has("gradlew", "build.gradle", "build.gradle.kts"):
        start = "./gradlew" if file == "gradlew" else "gradle"
        yield Found("test", f"{start} test", "it is a Gradle project", file)


def elixir(folder: Folder) -> Iterator[Found]:
    if not folder.has("mix.exs"):
        return
    yield Found("test", "mix test", "it is a Mix project", "mix.exs")
    if folder.has(".credo.exs"):
        yield Found("lint", "mix credo", "Credo is configured", ".credo.exs")


def deno(folder: Folder) -> Iterator[Found]:
    file = folder.has("deno.json", "deno.jsonc")
    if not file:
        return
    tasks = at(as_json(folder, file), "tasks")
    named = set(tasks) if isinstance(tasks, dict) else set()
    yield Found("test", "deno task test" if "test" in named else "deno test", "it is a Deno project", file)
    yield Found("lint", "deno task lint" if "lint" in named else "deno lint", "it is a Deno project", file)


def cmake(folder: Folder) -> Iterator[Found]:
    text = folder.text("CMakeLists.txt")
    if re.search(r"^[ \t]*(enable_testing\s*\(|include\s*\(\s*CTest\b)", text, re.MULTILINE | re.IGNORECASE):
        build = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
        yield Found("test", build, "the project has CTest tests", "CMakeLists.txt")


def bats(folder: Folder) -> Iterator[Found]:
    for name in ("tests", "test"):
        inner = folder.inside(name)
        deeper = [inside for sub in inner if sub.endswith("/") for inside in folder.inside(f"{name}/{sub[:-1]}")]
        if any(n.endswith(".bats") for n in (*inner, *deeper)):
            yield Found("test", f"bats --recursive {name}", f"{name}/ has Bats tests", f"{name}/")
            return


def dotnet(folder: Folder) -> Iterator[Found]:
    if file := next((n for n in sorted(folder.names) if n.endswith((".sln", ".slnx", ".csproj", ".fsproj"))), ""):
        yield Found("test", "dotnet test", "it is a .NET project", file)


def swift(folder: Folder) -> Iterator[Found]:
    if folder.has("Package.swift") and folder.has("Tests/"):
        yield Found("test", "swift test", "it is a Swift package with tests", "Package.swift")


_KINDS = (just, make, python, node, go, rust, ruby, php, java, elixir, deno, cmake, bats, dotnet, swift)
ECOSYSTEMS: dict[str, Callable[[Folder], Iterable[Found]]] = {kind.__name__: kind for kind in _KINDS}
