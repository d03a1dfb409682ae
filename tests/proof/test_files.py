"""What decides whether tests pass is recognised by name, by place, and by who uses it."""

from __future__ import annotations

import pytest

from ralph.proof.files import Role, deciding, is_collected, role_of, unrelated_tests
from ralph.proof.values import FileChange

ROLES = {
    Role.TEST: "tests/test_a.py pkg/a_test.go src/cart.test.ts spec/cart_spec.rb src/test/java/CartTest.java "
    "tests/cart.rs cypress/e2e/login.cy.ts shop/tests.py test/cart.js tests/CartTest.php tests/run.bats "
    "features/login.feature Shop.Tests/CartTests.cs test/cart_test.exs",
    Role.FIXTURE: "tests/data/a.json pkg/testdata/in.txt src/__snapshots__/a.snap fixtures/user.json golden/out.txt "
    "tests/cassettes/get.yaml spec/fixtures/a.yml expected.txt report.expected.json tests/fixtures/app.py",
    Role.HELPER: "conftest.py tests/conftest.py tests/helpers.py tests/__init__.py spec/spec_helper.rb "
    "src/__mocks__/fs.js internal/testutil/db.go src/test-utils.tsx test/support/server.js tests/common/mod.rs",
    Role.RUNNER: "pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml package.json .npmrc "
    "jest.config.js "
    "vitest.config.mts vitest.workspace.ts .mocharc.yml tsconfig.json tsconfig.build.json babel.config.json .babelrc "
    "sitecustomize.py src/usercustomize.py evil.pth .coveragerc noxfile.py .cargo/config.toml .config/nextest.toml "
    "node_modules/jest/index.js pkg/__pycache__/a.cpython-311.pyc "
    "phpunit.xml .rspec karma.conf.js playwright.config.ts cypress.config.ts mypy.ini ruff.toml eslint.config.mjs",
    Role.BUILD: "Makefile GNUmakefile makefile justfile Taskfile.yml CMakeLists.txt meson.build pom.xml "
    "build.gradle.kts build.rs Cargo.toml Rakefile setup.py rules.mk gradle.properties Dockerfile",
    Role.SCRIPT: "run_tests.sh scripts/check.sh scripts/lint bin/test runtests.py test.sh",
    Role.CI: ".github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile azure-pipelines.yml "
    ".woodpecker.yml .forgejo/workflows/a.yaml .travis.yml",
    Role.RULES: ".gitattributes sub/.gitignore .gitmodules .pre-commit-config.yaml .husky/pre-commit "
    ".ralph/config.yaml .claude/settings.json",
    Role.DEPENDENCIES: "requirements.txt requirements-dev.txt requirements/test.in poetry.lock uv.lock Cargo.lock "
    "package-lock.json pnpm-lock.yaml yarn.lock go.mod go.sum Gemfile Gemfile.lock composer.lock constraints.txt",
    Role.DOCS: "README.md docs/usage.rst LICENSE CHANGELOG.md tests/README.md",
    Role.SOURCE: "src/cart.py cart.js main.go src/lib.rs shop/testing.py src/features/login/Login.tsx app/latest.py "
    "src/contest.py src/main/java/org/test/Cart.java lib/attestation.rb src/config.py shop/tasks.py data/rates.json "
    "src/index.html src/app.css db/001.sql protest.py shop/checks.py src/fixtures/load.py src/specs/openapi.ts",
}


@pytest.mark.parametrize(("role", "path"), [(role, path) for role, paths in ROLES.items() for path in paths.split()])
def test_a_path_has_a_role(role: Role, path: str) -> None:
    assert role_of(path) is role


def test_what_runners_collect() -> None:
    assert all(map(is_collected, ("tests/test_a.py", "a_test.go", "test/cart.js", "src/a.spec.ts", "tests/cart.rs")))
    assert not any(
        map(is_collected, ("tests/conftest.py", "tests/helpers.js", "testdata/a_test.go", "tests/common/mod.rs"))
    )


def decided(
    path: str,
    old: str | None = "old",
    new: str | None = "new",
    *,
    commands: tuple[str, ...] = ("pytest",),
    tests: dict[str, str] | None = None,
    sources: dict[str, str] | None = None,
    also: tuple[FileChange, ...] = (),
) -> bool:
    change = FileChange(path, None if old is None else old.encode(), None if new is None else new.encode())
    encoded = [{name: text.encode() for name, text in (files or {}).items()} for files in (tests, sources)]
    return change in deciding([change, *also], commands, *encoded)


def test_tests_and_configuration_decide_and_source_and_dependencies_do_not() -> None:
    assert decided("tests/test_a.py")
    assert decided("pytest.toml", None)
    assert decided("GNUmakefile", None)
    assert decided("pytest.py", None)
    assert decided("unittest/__init__.py", None)
    assert not decided("shop/contrib/pytest.py", None)
    assert decided("package.json", '{"scripts": {"test": "node --test"}}', '{"scripts": {"test": "true"}}')
    assert not decided("package.json", '{"version": "1"}', '{"version": "2"}')
    assert not decided("src/cart.py")
    assert not decided("uv.lock")
    assert not decided("README.md")


def test_data_that_a_test_reads_decides() -> None:
    assert decided("data/rates.json", tests={"tests/test_a.py": "load('data/rates.json')"})
    assert decided("data/rates.json", tests={"tests/test_a.py": "ROOT / 'data' / 'rates.json'"})
    assert decided("data/rates.json", tests={"tests/test_a.py": "Path('data').glob('*.json')"})
    assert decided("data/rates.json", tests={"tests/test_a.py": "load('data', 'rates')"})
    assert not decided("data/rates.json", tests={"tests/test_a.py": "load('prorates.json')"})
    assert not decided("data/rates.json", tests={"tests/test_a.py": "pass"})


def test_data_that_the_product_read_when_the_story_began_is_product() -> None:
    tests = {"tests/test_a.py": "load('rates.json')"}
    assert not decided("data/rates.json", tests=tests, sources={"src/cart.py": "open('rates.json')"})
    mention = FileChange("src/cart.py", b"", b"# rates.json")
    assert decided("data/rates.json", tests=tests, sources={"src/cart.py": "# rates.json"}, also=(mention,))


HELPER = "def assert_total(a, b):\n    assert a == b\n"


def test_a_helper_that_only_tests_import_decides() -> None:
    tests = {"tests/test_a.py": "from checking import assert_total"}
    assert decided("checking.py", HELPER, "", tests=tests)
    assert decided("src/shop/checking.py", HELPER, "", tests={"tests/test_a.py": "from shop.checking import x"})
    assert decided("src/shop/checking.py", HELPER, "", tests={"tests/test_a.py": "from shop import checking"})
    assert not decided("checking.py", HELPER, "", tests=tests, sources={"app.py": "import checking"})
    assert not decided("cart.py", "def total(): return 1", "", tests={"tests/test_a.py": "from cart import total"})
    assert not decided("checking.py", HELPER, "")
    tests = {"tests/test_a.py": "from support.comparing import same"}
    assert decided("support/comparing.py", HELPER, "", tests=tests, sources={"support/__init__.py": ""})


def test_an_import_added_to_the_product_does_not_make_a_helper_product() -> None:
    importer = FileChange("app.py", b"", b"import checking")
    tests = {"tests/test_a.py": "import checking"}
    assert decided("checking.py", HELPER, "", tests=tests, sources={"app.py": "import checking"}, also=(importer,))


def test_helpers_of_helpers_decide() -> None:
    tests = {"tests/test_a.py": "import checking"}
    sources = {"checking.py": "import matchers\n" + HELPER, "matchers.py": HELPER}
    assert decided("matchers.py", HELPER, "", tests=tests, sources=sources)
    assert not decided("matchers.py", HELPER, "", tests=tests, sources={**sources, "app.py": "import matchers"})


def test_javascript_helpers() -> None:
    helper = "import assert from 'node:assert'; export function check(x) { assert.ok(x) }"
    assert decided("lib/check.js", helper, "", tests={"test/a.test.js": "import { check } from '../lib/check.js'"})
    assert decided("lib/check.js", helper, "", tests={"test/a.test.js": "const x = require('../lib/check')"})
    assert not decided(
        "lib/check.js",
        helper,
        "",
        tests={"test/a.test.js": "require('../lib/check')"},
        sources={"lib/app.js": "require('./check')"},
    )


def test_pytest_plugins_decide() -> None:
    assert decided("quiet.py", "", "x", tests={"tests/conftest.py": "pytest_plugins = ['quiet']"})
    assert decided("quiet.py", None, "x", commands=("pytest -p quiet",))
    assert decided("pkg/quiet.py", "", "x", sources={"pytest.ini": "[pytest]\naddopts = -p pkg.quiet\n"})
    assert not decided("quiet.py", "", "x", commands=("pytest -p no:quiet",))


def test_scripts_and_files_that_a_check_names_decide() -> None:
    assert decided("go.sh", commands=("./go.sh",))
    assert decided("go.sh", commands=("bash -e go.sh fast",))
    assert decided("tools/gate.py", commands=("python tools/gate.py",))
    assert decided("gate.py", HELPER, "", commands=("FOO=1 timeout 10 python3 gate.py",))
    assert decided("out.ref", commands=("./app | diff - out.ref",))
    assert decided("custom.ini", commands=("pytest -c custom.ini",))
    assert decided("lib.sh", commands=("./go.sh",), sources={"go.sh": "#!/bin/sh\n. ./lib.sh\n"})
    assert decided(
        "gate.js", "require('assert')", "", sources={"package.json": '{"scripts": {"test": "node gate.js"}}'}
    )
    assert decided("gate", sources={"Makefile": "test:\n\t@./gate\n"}, commands=("make test",))


def test_a_product_that_a_check_runs_or_reads_is_not_a_script() -> None:
    assert not decided("main.py", "print(1)", "print(2)", commands=("python main.py",))
    assert not decided("greet.sh", commands=("bash greet.sh | grep -q hello",))
    assert not decided("src/app.py", commands=("ruff check src/app.py", "test -f src/app.py"))
    assert not decided("README.md", commands=("grep -q usage README.md",))
    assert not decided("data.json", commands=("jq .a data.json",))


def test_tests_inside_a_rust_file_decide_only_if_they_changed() -> None:
    tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n"
    assert decided("src/lib.rs", f"fn a() {{}}\n{tests}", f"fn b() {{}}\n{tests.replace('fn a', 'fn b')}")
    assert not decided("src/lib.rs", f"fn a() {{}}\n{tests}", f"fn b() {{}}\n{tests}")


def test_a_targeted_run_keeps_what_touched_tests_import() -> None:
    files = {
        "tests/test_a.py": b"from test_b import case",
        "tests/test_b.py": b"",
        "tests/test_c.py": b"",
        "tests/conftest.py": b"",
    }
    assert unrelated_tests(files, ["tests/test_a.py"]) == {"tests/test_c.py"}
