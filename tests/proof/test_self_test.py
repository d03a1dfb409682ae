from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from shlex import quote

import msgspec
import pytest

from ralph.config.checks import ChosenCheck
from ralph.host.git.snapshot import snapshot_tree
from ralph.host.process.fence import is_available
from ralph.proof.place import CheckoutPlace, InPlace, Place, Request, Runner, expected_place
from ralph.proof.place_choice import choose_place, damaged, import_roots, imported_by, is_source, python_of, to_damage
from support.cli import ralph_here as ralph
from support.repositories import Project, listing

PACKAGES = sysconfig.get_path("purelib")
NODE = shutil.which("node")


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    made = Project(tmp_path, commit=False)
    made.write(".gitignore", ".venv/\nnode_modules/\n__pycache__/\n*.egg-info/\ngenerated.py\n")
    return made


def _commit(project: Project) -> str:
    project.git("add", "-A")
    project.git("commit", "-qm", "first")
    return project.git("rev-parse", "HEAD^{tree}")


def _request(project: Project, **changes: object) -> Request:
    state = project.index.parent
    request = Request(
        repo=project.repo,
        workspace=project.root,
        state=state,
        plan_state=state / "plan",
        index_file=project.index,
        run="r1",
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        runner=Runner(ceiling=60.0),
    )
    return msgspec.structs.replace(request, **changes)


def _python_project(project: Project) -> None:
    project.write(
        "pyproject.toml",
        '[project]\nname = "demo"\nversion = "1"\n[build-system]\nrequires = ["hatchling"]\n'
        'build-backend = "hatchling.build"\n[tool.hatch.build.targets.wheel]\npackages = ["src/demo"]\n',
    )
    project.write("src/demo/__init__.py", "def answer() -> int:\n    return 42\n")
    project.write("tests/test_demo.py", "from demo import answer\n\n\ndef test_it():\n    assert answer() == 42\n")


def _venv(folder: Path, project: Project) -> Path:
    """A virtual environment with pytest and a real editable install of the project."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "tools.pth").write_text(f"{PACKAGES}\n")
    install = ("install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-e", str(project.root))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "--disable-pip-version-check", *install]
    subprocess.run(pip, check=True, env=os.environ | {"PYTHONPATH": PACKAGES})
    program = folder / "bin/pytest"
    program.write_text(
        f"#!{folder}/bin/python\nimport sys\nfrom pytest import console_main\nsys.exit(console_main())\n"
    )
    program.chmod(0o755)
    return folder


def _passes(place: Place, tree: str, check: ChosenCheck) -> bool:
    (ran,) = place.run(tree, [check])
    return ran.result.passed


def test_a_copied_environment_reads_the_code_of_the_checkout(project: Project) -> None:
    _python_project(project)
    _venv(project.root / ".venv", project)
    tree = _commit(project)
    check = ChosenCheck("tests", ".venv/bin/pytest -q -p no:cacheprovider")
    chosen = choose_place(_request(project), tree, [check])
    place = chosen.place
    assert isinstance(place, CheckoutPlace), place.note
    assert place.note == ""
    assert [one.result.passed for one in chosen.ran] == [True]
    place.begin(tree)
    wrong = place.compose(tree, {"src/demo/__init__.py": b"def answer() -> int:\n    return 41\n"})
    assert not _passes(place, wrong, check)
    assert _passes(place, tree, check)
    assert (project.root / "src/demo/__init__.py").read_text().endswith("42\n")
    assert "PYTHONPATH" not in place.env


def test_an_editable_install_elsewhere_needs_import_roots(project: Project, tmp_path: Path) -> None:
    _python_project(project)
    venv = _venv(tmp_path / "elsewhere", project)
    tree = _commit(project)
    check = ChosenCheck("tests", f"{venv}/bin/pytest -q -p no:cacheprovider")
    place = choose_place(_request(project), tree, [check]).place
    assert isinstance(place, CheckoutPlace), place.note
    assert place.env["PYTHONPATH"].startswith(str(place.checkout.path / "src"))
    place.begin(tree)
    assert not _passes(place, place.compose(tree, {"src/demo/__init__.py": b""}), check)


def test_an_ignored_file_with_settings_is_named_with_the_command_that_copies_it(project: Project) -> None:
    project.write(".gitignore", ".env\n")
    project.write(".env", "A=1\n")
    project.write("main.py", "open('.env')\n")
    tree = _commit(project)
    place = choose_place(_request(project), tree, [ChosenCheck("run", f"{quote(sys.executable)} main.py")]).place
    assert place.note.endswith("(git ignores .env: run `ralph config set proof.files '[\".env\"]'`)")


def test_what_only_the_workspace_has_is_named(project: Project) -> None:
    project.write("main.py", "import generated\n")
    project.write("generated.py", "")
    tree = _commit(project)
    check = ChosenCheck("run", f"{quote(sys.executable)} main.py")
    assert expected_place(_request(project)).startswith("proof runs in a clean checkout")
    chosen = choose_place(_request(project), tree, [check])
    assert isinstance(chosen.place, InPlace)
    assert chosen.place.note == (
        f"proof runs in the workspace: `{check.command}` passes there but fails in a clean checkout: "
        "ModuleNotFoundError: No module named 'generated' (set proof.setup or proof.files)"
    )
    assert expected_place(_request(project)) == chosen.place.note
    assert expected_place(_request(project, files=("generated.py",))).startswith("proof runs in a clean checkout")
    by_file = choose_place(_request(project, files=("generated.py",)), tree, [check]).place
    assert by_file.where == "checkout"
    by_command = _request(project, setup="touch generated.py")
    assert choose_place(by_command, tree, [check]).place.where == "checkout"
    failing = choose_place(_request(project, setup="echo no network >&2; exit 1"), tree, [check]).place
    assert "failed: no network" in failing.note


def test_checks_that_notice_nothing_are_named(project: Project) -> None:
    project.write("main.py", "print(1)\n")
    place = choose_place(_request(project), _commit(project), [ChosenCheck("nothing", "true")]).place
    assert place.where == "checkout"
    assert place.note == "no check notices when main.py is damaged"


def test_the_choice_is_made_once(project: Project, tmp_path: Path) -> None:
    project.write("main.py", "print(1)\n")
    tree = _commit(project)
    log = tmp_path / "log"
    check = ChosenCheck("run", f"echo x >> {log}; {quote(sys.executable)} main.py")
    first = choose_place(_request(project), tree, [check])
    count = len(log.read_text().split())
    assert count >= 2
    again = choose_place(_request(project, run="r2"), tree, [check])
    assert again.place.where == first.place.where == "checkout"
    assert len(log.read_text().split()) == count
    project.write("requirements.txt", "x\n")
    choose_place(_request(project), _commit(project), [check])
    assert len(log.read_text().split()) == 2 * count


def test_dependencies_are_installed_again_when_their_list_changes(project: Project) -> None:
    project.write("main.py", "import sys; sys.path.insert(0, 'node_modules'); import dependency\n")
    project.write("package.json", '{"dependencies": {"a": "1"}}')
    tree = _commit(project)
    setup = "test ! -e broken && mkdir -p node_modules && cp package.json node_modules/list && "
    setup += "echo 'VALUE = 1' > node_modules/dependency.py"
    check = ChosenCheck("run", f"{quote(sys.executable)} main.py")
    place = choose_place(_request(project, setup=setup), tree, [check]).place
    assert isinstance(place, CheckoutPlace), place.note
    changed = place.compose(tree, {"package.json": b'{"dependencies": {"a": "2"}}'})
    place.begin(changed)
    assert '"2"' in (place.checkout.path / "node_modules/list").read_text()
    assert _passes(place, changed, check)
    assert not place.limits
    place.begin(place.compose(tree, {"package.json": b'{"dependencies": {"a": "3"}}', "broken": b""}))
    (limit,) = place.limits
    assert limit.startswith("dependencies changed: those installed in the workspace were used")


def test_what_an_earlier_candidate_left_behind_is_gone(project: Project) -> None:
    project.write("main.py", "import demo\n")
    project.write("demo.py", "")
    project.write("node_modules/dep.js", "original")
    tree = _commit(project)
    place = choose_place(_request(project), tree, [ChosenCheck("run", f"{quote(sys.executable)} main.py")]).place
    assert isinstance(place, CheckoutPlace), place.note
    place.begin(tree)
    before = listing(place.checkout.path)
    script = "echo 1 > generated.py; echo forged > node_modules/dep.js; mkdir -p __pycache__; "
    script += "printf 'abcd\\001\\000\\000\\000' > __pycache__/demo.cpython-311.pyc; echo x > demo.py"
    place.run(tree, [ChosenCheck("cheat", script)])
    place.begin(tree)
    after = {name: item for name, item in listing(place.checkout.path).items() if name != "__pycache__/"}
    assert after == {name: item for name, item in before.items() if not name.startswith("__pycache__")}


def test_checks_do_not_see_the_loop(project: Project) -> None:
    project.write("main.py", "print(1)\n")
    tree = _commit(project)
    env = os.environ | {"RALPH_STORY": "US-1", "TOKEN_FOR_TESTS": "yes"}
    place = choose_place(_request(project, env=env), tree, []).place
    (ran,) = place.run(tree, [ChosenCheck("env", "pwd; env")])
    shown = ran.output.decode()
    assert "RALPH" not in shown
    assert "/checkouts/" in shown.splitlines()[0]
    assert "TOKEN_FOR_TESTS=yes" in shown
    minimal = choose_place(_request(project, env=env, pass_all_env=False), tree, []).place
    (ran,) = minimal.run(tree, [ChosenCheck("env", "env")])
    assert "TOKEN_FOR_TESTS" not in ran.output.decode()


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_package_of_an_npm_workspace_is_the_one_of_the_checkout(project: Project, is_absolute: bool) -> None:
    project.write("package.json", '{"name": "root", "workspaces": ["packages/*"]}')
    project.write("packages/lib/package.json", '{"name": "lib", "main": "index.js"}')
    project.write("packages/lib/index.js", "exports.value = 1;\n")
    project.write(
        "test/lib.test.js", "require('node:test')('lib', () => { if (require('lib').value !== 1) throw 1; });\n"
    )
    (project.root / "node_modules").mkdir()
    target = project.root / "packages/lib" if is_absolute else Path("../packages/lib")
    (project.root / "node_modules/lib").symlink_to(target)
    tree = _commit(project)
    check = ChosenCheck("tests", "node --test test/")
    place = choose_place(_request(project), tree, [check]).place
    assert isinstance(place, CheckoutPlace), place.note
    assert place.note == ""
    assert not _passes(place, place.compose(tree, {"packages/lib/index.js": b"exports.value = 2;\n"}), check)


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_linked_package_that_is_read_from_the_workspace_is_named(project: Project, tmp_path: Path) -> None:
    """`npm link` puts the link outside of the project, where nothing redirects it."""
    project.write("package.json", '{"name": "lib", "main": "index.js"}')
    project.write("index.js", "exports.value = 1;\n")
    project.write(
        "test/lib.test.js", "require('node:test')('lib', () => { if (require('lib').value !== 1) throw 1; });\n"
    )
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/lib").symlink_to(project.root)
    tree = _commit(project)
    env = os.environ | {"NODE_PATH": str(tmp_path / "modules")}
    place = choose_place(_request(project, env=env), tree, [ChosenCheck("tests", "node --test test/")]).place
    assert place.where == "in-place"
    assert f"reads {project.root}/index.js even in a clean checkout" in place.note


def test_in_place_other_trees_are_put_in_and_out(project: Project) -> None:
    project.write("main.py", "VALUE = 1\n")
    project.write("dos.txt", "a\r\n")
    project.write(".gitattributes", "*.txt text\n")
    tree = _commit(project)
    before = project.listing()
    place = choose_place(_request(project, where="in-place"), tree, []).place
    assert place.where == "in-place"
    snapshot = snapshot_tree(project.repo, project.index)
    place.begin(tree, snapshot)
    other = place.compose(tree, {"main.py": b"VALUE = 2\n", "dos.txt": b"b\n", "new.py": b"", ".gitattributes": None})
    (ran,) = place.run(other, [ChosenCheck("look", "ls -A; cat main.py dos.txt; pwd")])
    shown = ran.output.decode()
    assert "VALUE = 2\nb\n" in shown
    assert "new.py" in shown
    assert ".gitattributes" not in shown
    assert shown.rstrip().endswith(str(project.root))
    assert project.listing() == before
    assert project.status() == ""


def test_a_workspace_around_or_inside_the_repository(project: Project) -> None:
    project.write("sub/main.py", "print(1)\n")
    tree = _commit(project)
    for workspace, command in ((project.root.parent, "ls project/sub/main.py"), (project.root / "sub", "ls main.py")):
        place = choose_place(_request(project, workspace=workspace), tree, []).place
        assert place.where == "checkout"
        (ran,) = place.run(tree, [ChosenCheck("look", command)])
        assert ran.result.passed, ran.output
    far = choose_place(_request(project, workspace=Path("/usr")), tree, []).place
    assert far.where == "in-place"


def test_the_choice_of_files_to_damage() -> None:
    tests = {
        "tests/test_a.py": b"import pkg.deep.mod\nfrom pkg import used as other, more\n",
        "web/a.test.ts": b"import { x } from './a'\nconst y = require('../lib/y.js')\n",
    }
    sources = ["src/pkg/deep/mod.py", "src/pkg/used.py", "src/pkg/other.py", "web/a.ts", "lib/y.js", "setup.py"]
    assert set(imported_by(tests, sources)) == {"src/pkg/deep/mod.py", "src/pkg/used.py", "web/a.ts", "lib/y.js"}
    assert to_damage(["README.md", "z.py", "tests/test_a.py", "setup.py", *sources], tests) == (
        "web/a.ts", "lib/y.js", "src/pkg/deep/mod.py",
    )  # fmt: skip
    assert not any(map(is_source, ["tests/helper.py", "a_test.go", "docs/conf.py", "x.test.js", "vite.config.ts"]))


def test_damage_comes_after_the_start_line() -> None:
    assert damaged("a.sh", b"#!/bin/sh\necho\n") == b"#!/bin/sh\nexit 97\necho\n"
    assert damaged("a.py", b"x = 1\n").startswith(b"raise RuntimeError")


def test_the_interpreter_of_a_check() -> None:
    assert python_of(".venv/bin/pytest -q") == ".venv/bin/python"
    assert python_of("uv run pytest -q") == "uv run python3"
    assert python_of("python3.12 -m unittest") == "python3.12"
    assert python_of("npm test") == ""
    assert import_roots(["src/a/__init__.py", "src/a/b.py", "tool.py", "tests/test_x.py"]) == ("src", ".")


def test_results_are_read_by_name(project: Project) -> None:
    project.write("test_one.py", "def test_good():\n    pass\n\n\ndef test_bad():\n    assert False\n")
    tree = _commit(project)
    place = choose_place(_request(project), tree, []).place
    (ran,) = place.run(tree, [ChosenCheck("tests", f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider")])
    assert sorted(ran.tests.names.values()) == ["failed", "passed"]
    assert (ran.tests.passed, ran.tests.failed) == (1, 1)


@pytest.mark.skipif(not is_available(), reason="the kernel has no Landlock")
@pytest.mark.parametrize("is_home", [False, True])
def test_code_outside_the_commit_cannot_be_read(project: Project, tmp_path: Path, is_home: bool) -> None:
    project.write("main.py", "VALUE = 1\n")
    project.write("test_main.py", "import main\nassert main.VALUE\n")
    tree = _commit(project)
    check = ChosenCheck("tests", f"{quote(sys.executable)} test_main.py && git status --porcelain")
    place = choose_place(_request(project), tree, [check]).place
    assert isinstance(place, CheckoutPlace), place.note
    hiding = Path(os.environ["HOME"]) if is_home else project.root
    (hiding / "generated.py").write_text("VALUE = 1\n")
    cheat = f"import sys\nsys.path.insert(0, {str(hiding)!r})\nfrom generated import VALUE\n"
    cheated = place.compose(tree, {"main.py": cheat.encode()})
    assert not _passes(place, cheated, check)
    assert not _passes(place, cheated, msgspec.structs.replace(check, name="US-1: tests", story="US-1"))
    assert _passes(place, tree, check)


@pytest.mark.skipif(not is_available(), reason="the kernel has no Landlock")
def test_a_check_that_needs_a_hidden_folder_gets_it(project: Project) -> None:
    project.write("main.py", "print(1)\n")
    data = Path(os.environ["HOME"]) / "data/deep/file"
    data.parent.mkdir(parents=True)
    data.write_text("x")
    (project.root / "data").symlink_to(data)
    tree = _commit(project)
    check = ChosenCheck("run", "cat data")
    place = choose_place(_request(project), tree, [check]).place
    assert isinstance(place, CheckoutPlace), place.note
    assert _passes(place, tree, check)
    # Still hidden: the workspace.
    assert not _passes(
        place, tree, ChosenCheck("look", 'cat "$(cat .git/objects/info/alternates | tail -1)/../config"')
    )


@pytest.mark.skipif(not is_available(), reason="the kernel has no Landlock")
def test_a_check_of_a_story_may_need_more_than_those_of_the_start(project: Project) -> None:
    project.write("main.py", "print(1)\n")
    data = Path(os.environ["HOME"]) / "data/deep/file"
    data.parent.mkdir(parents=True)
    data.write_text("x")
    (project.root / "data").symlink_to(data)
    tree = _commit(project)
    place = choose_place(_request(project), tree, [ChosenCheck("run", "cat main.py")]).place
    place.begin(tree, "")
    assert _passes(place, tree, ChosenCheck("own", "cat data"))
    assert place.limits == ("`cat data` passes only if it can read files outside the checkout",)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("{}", "proof runs in a clean checkout; the first run tests that"),
        ("proof: {setup: make deps}", "proof runs in a clean checkout, after `make deps`"),
        ("proof: {where: in-place}", "proof runs in the workspace (proof.where: in-place)"),
    ],
)
def test_where_proof_will_run_is_told(project: Project, settings: str, sentence: str) -> None:
    project.write("ralph/tasks.json", '{"tasks": [{"id": "1", "title": "x", "description": "y"}]}')
    project.write(".ralph/config.yaml", f"{settings}\n")
    _commit(project)
    for command in ("preflight", "doctor"):
        assert sentence in ralph(command, cwd=project.root).out
