from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ralph.setup.project_files import RealTree
from ralph.setup.toolchain import ProposedCheck, Toolchain, find

NPM_DEFAULT = 'echo "Error: no test specified" && exit 1'


def project(root: Path, files: dict[str, str]) -> Toolchain:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return find(RealTree(root))


def commands(found: Toolchain) -> dict[str, str]:
    return {check.name: check.line for check in found.checks}


def package(**scripts: str) -> str:
    return json.dumps({"name": "x", "scripts": scripts})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n"},
            ["pytest", "ruff check", "mypy ."],
        ),
        (
            {"pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8", "ruff", "mypy"]\n', "uv.lock": ""},
            ["uv run pytest", "uv run ruff check", "uv run mypy ."],
        ),
        (
            {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "*"\n', "poetry.lock": ""},
            ["poetry run pytest"],
        ),
        ({"pyproject.toml": '[tool.mypy]\nfiles = ["src"]\n'}, ["mypy"]),
        ({"setup.cfg": "[tool:pytest]\n[flake8]\n"}, ["pytest", "flake8"]),
        ({"requirements-dev.txt": "pytest==8\n", "setup.py": ""}, ["pytest"]),
        ({"tox.ini": "[tox]\n"}, ["tox"]),
        ({"noxfile.py": ""}, ["nox"]),
        ({"manage.py": ""}, ["python3 manage.py test"]),
        ({"setup.py": "", "tests/test_a.py": ""}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": ""}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": "", "tests/__init__.py": ""}, ["python3 -m unittest discover -s tests -t ."]),
        ({"tests/a_test.py": ""}, ["python3 -m unittest discover -s tests -p '*_test.py'"]),
        ({"tests/test_a.py": "def test_a():\n    pass\n"}, ["pytest"]),
        ({"tests/helpers.py": ""}, []),
        (
            {"setup.py": "", "tests/test_a.py": "import unittest\n", "tests/__init__.py": ""},
            ["python3 -m unittest discover -s tests -t ."],
        ),
        ({"setup.py": "", "tests/test_a.py": "def test_a():\n    pass\n"}, ["pytest"]),
        ({"setup.py": "", "test/a_test.py": "import pytest\n"}, ["pytest"]),
        ({"test_a.py": "import unittest\n"}, ["python3 -m unittest"]),
        ({"setup.py": "", "test_a.py": "import unittest\n", ".venv/bin/pytest": ""}, [".venv/bin/pytest"]),
        ({"setup.py": "", "tests/unit/test_a.py": "", ".venv/bin/pytest": ""}, [".venv/bin/pytest"]),
        ({"tools/test_a.py": "def test_a(): pass\n"}, []),
        (
            {"setup.py": "", "shop/__init__.py": "", "shop/test_a.py": "import unittest\n"},
            ["python3 -m unittest discover -s shop -t ."],
        ),
        ({"setup.py": "", "shop/__init__.py": "", "shop/tests/test_a.py": "import pytest\n"}, ["pytest"]),
        (
            {"setup.py": "", "shop/__init__.py": "", "shop/tests/__init__.py": "", "shop/tests/test_a.py": ""},
            ["python3 -m unittest discover -s shop/tests -t ."],
        ),
        (
            {"package.json": package(test="vitest run", lint="eslint .", typecheck="tsc")},
            ["npm test", "npm run lint", "npm run typecheck"],
        ),
        ({"package.json": package(test="jest"), "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": package(test="jest"), "yarn.lock": ""}, ["yarn test"]),
        ({"package.json": package(test="bun test"), "bun.lock": ""}, ["bun run test"]),
        ({"package.json": package(test=NPM_DEFAULT)}, []),
        ({"package.json": package(test=NPM_DEFAULT, lint="eslint .")}, ["npm run lint"]),
        ({"package.json": package(test="react-scripts test")}, ["CI=true npm test"]),
        ({"package.json": package(test="jest --watch", **{"test:ci": "jest --ci"})}, ["npm run test:ci"]),
        ({"package.json": package(test="jest --watchAll=false")}, ["npm test"]),
        (
            {"package.json": '{"devDependencies": {"typescript": "5"}}', "tsconfig.json": "{}"},
            ["npx --no-install tsc --noEmit"],
        ),
        ({"Makefile": ".PHONY: test lint\ntest lint: deps\n\tgo test\n"}, ["make test", "make lint"]),
        ({"Makefile": "check:\n\t./check\n"}, ["make check"]),
        ({"Makefile": "test := yes\ntests ::= no\n# lint: no\n\tcheck: no\n"}, []),
        ({"justfile": "set shell := ['sh']\n@test *args:\n  x\nlint path='.':\n  y\n"}, ["just test", "just lint"]),
        ({"justfile": "test target:\n  x\n"}, []),
        ({"go.mod": "module x\n"}, ["go test ./...", "go vet ./..."]),
        ({"go.mod": "module x\n", ".golangci.yml": ""}, ["go test ./...", "golangci-lint run"]),
        ({"Cargo.toml": '[package]\nname = "x"\n'}, ["cargo test"]),
        (
            {"Cargo.toml": '[workspace]\nmembers = ["a"]\n[workspace.lints.clippy]\nall = "warn"\n'},
            ["cargo test --workspace", "cargo clippy --workspace --all-targets"],
        ),
        ({"Gemfile": "gem \"rspec-rails\"\ngem('rubocop')\n"}, ["bundle exec rspec", "bundle exec rubocop"]),
        (
            {"composer.json": '{"scripts": {"test": "phpunit"}}', "phpstan.neon": ""},
            ["composer test", "vendor/bin/phpstan analyse"],
        ),
        ({"composer.json": "{}", "phpunit.xml.dist": ""}, ["vendor/bin/phpunit"]),
        ({"pom.xml": "<project/>"}, ["mvn -B test"]),
        ({"pom.xml": "<project/>", "mvnw": ""}, ["./mvnw -B test"]),
        ({"build.gradle.kts": "", "gradlew": ""}, ["./gradlew test"]),
        ({"mix.exs": "", ".credo.exs": ""}, ["mix test", "mix credo"]),
        ({"deno.jsonc": '{ // tasks\n "tasks": {"test": "deno test -A", }, }'}, ["deno task test", "deno lint"]),
        (
            {"CMakeLists.txt": "project(x)\nenable_testing()\n"},
            ["cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"],
        ),
        ({"CMakeLists.txt": "project(x)\n"}, []),
        ({"tests/unit/test_a.bats": ""}, ["bats --recursive tests"]),
        ({"x.sln": ""}, ["dotnet test"]),
        ({"Package.swift": "", "Tests/a.swift": ""}, ["swift test"]),
        ({"README.md": "make test"}, []),
    ],
)
def test_the_commands_of_a_project_are_found(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    found = project(tmp_path, files)

    assert [check.line for check in found.checks] == expected


def test_a_check_says_why_and_in_which_file(tmp_path: Path) -> None:
    found = project(tmp_path, {"go.mod": "module x\n"})

    assert found.checks[0] == ProposedCheck("test", "go test ./...", "it is a Go module", "go.mod")


def test_several_languages_get_names_of_their_own(tmp_path: Path) -> None:
    found = project(tmp_path, {"go.mod": "module x\n", "package.json": package(test="jest", lint="eslint .")})

    assert commands(found) == {
        "node-test": "npm test",
        "node-lint": "npm run lint",
        "go-test": "go test ./...",
        "go-lint": "go vet ./...",
    }


def test_projects_one_folder_down_are_checked_there(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        {
            "backend/pyproject.toml": "[tool.pytest.ini_options]\n",
            "backend/uv.lock": "",
            "my app/package.json": package(test="jest"),
            "node_modules/package.json": package(test="jest"),
            ".hidden/package.json": package(test="jest"),
            "a/b/package.json": package(test="jest"),
        },
    )

    assert commands(found) == {
        "backend-test": "cd backend && uv run pytest",
        "my-app-test": "cd 'my app' && npm test",
    }
    assert found.checks[0].file == "backend/pyproject.toml"


def test_the_root_of_a_workspace_speaks_for_its_members(tmp_path: Path) -> None:
    found = project(tmp_path, {"package.json": package(test="turbo test"), "web/package.json": package(test="jest")})

    assert commands(found) == {"test": "npm test"}


def test_what_people_declared_beats_what_settings_suggest(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        {
            "Makefile": "test:\n\tpytest\n",
            "pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n",
            "web/package.json": package(test="jest"),
        },
    )

    assert commands(found) == {"test": "make test", "lint": "ruff check"}
    assert {check.name: check.line for check in found.also} == {
        "python-test": "pytest",
        "web-test": "cd web && npm test",
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("package.json", b"{not json"),
        ("package.json", b'["a"]'),
        ("package.json", b'{"scripts": ["test"]}'),
        ("package.json", b"[" * 100_000),
        ("pyproject.toml", b"[tool.pytest"),
        ("pyproject.toml", b"\xff\xfe\x00"),
        ("pyproject.toml", b"x = " + b"[" * 50_000),
        ("pyproject.toml", b"tool = 3\nproject = []\n"),
        ("Cargo.toml", b"\x00"),
        ("composer.json", b"\x00"),
        ("deno.jsonc", b"/*"),
        ("Gemfile", b"\xff"),
    ],
)
def test_a_broken_file_never_stops_the_search(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "go.mod").write_text("module x\n")

    assert "go test ./..." in [check.line for check in find(RealTree(tmp_path)).checks]


def test_a_broken_file_is_named_in_a_warning(tmp_path: Path) -> None:
    found = project(tmp_path, {"package.json": "{not json", "pyproject.toml": "[tool"})

    assert found.checks == ()
    assert [warning.split(" ")[0] for warning in found.warnings] == ["pyproject.toml", "package.json"]


def test_what_is_not_a_small_regular_file_is_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "package.json").write_text(package(test="jest"))
    root = tmp_path / "project"
    root.mkdir()
    os.mkfifo(root / "pyproject.toml")
    (root / "package.json").symlink_to(outside / "package.json")
    (root / "web").symlink_to(outside)
    (root / "Makefile").mkdir()
    (root / "justfile").write_bytes(b"test:\n" + b"#" * 2_000_000)

    found = find(RealTree(root))

    assert found.checks == ()
    assert len(found.warnings) == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", " " * 900_000 + "x"),
        ("justfile", "test" + " " * 900_000),
        ("Gemfile", "gem" + " " * 450_000 + "\n" * 450_000),
        ("CMakeLists.txt", "\n" * 900_000),
        ("deno.jsonc", "/*" * 400_000),
        ("deno.jsonc", "," * 400_000),
        ("package.json", '{"scripts": {"test": "' + "--watch" * 100_000 + '"}}'),
        ("setup.cfg", "files" + " " * 900_000),
    ],
)
def test_hostile_text_costs_no_time(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    started = time.monotonic()

    find(RealTree(tmp_path))

    assert time.monotonic() - started < 3
