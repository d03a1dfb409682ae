"""The second pass gets the old expectations, and the new dependencies."""

from __future__ import annotations

import configparser
import json
import tomllib

from ralph.proof.restore import as_after, as_before
from ralph.proof.values import FileChange


def restored(path: str, old: str | None, new: str | None) -> str | None:
    content = as_before(FileChange(path, None if old is None else old.encode(), None if new is None else new.encode()))
    return None if content is None else content.decode()


def test_a_plain_file_is_as_it_was() -> None:
    assert restored("tests/test_a.py", "old", "new") == "old"
    assert restored("tests/test_a.py", None, "new") is None
    assert restored("tests/test_a.py", "old", None) == "old"


def test_package_json_keeps_new_dependencies_and_gets_the_old_scripts() -> None:
    old = {"name": "shop", "scripts": {"test": "node --test"}, "dependencies": {"a": "1"}, "jest": {"bail": True}}
    new = {
        "name": "shop",
        "scripts": {"test": "true", "pretest": "rm -r test"},
        "dependencies": {"a": "1", "b": "2"},
        "mocha": {"grep": "x"},
        "exports": "./index.js",
    }
    merged = json.loads(restored("package.json", json.dumps(old), json.dumps(new)) or "")
    assert merged == {
        "name": "shop",
        "scripts": {"test": "node --test"},
        "dependencies": {"a": "1", "b": "2"},
        "jest": {"bail": True},
        "exports": "./index.js",
    }


def test_a_package_json_with_only_new_dependencies_stays_byte_for_byte() -> None:
    new = '{\n    "scripts": {"test": "jest"}, "version": "2"}'
    assert restored("package.json", '{"scripts": {"test": "jest"}}', new) == new


def test_a_broken_package_json_is_restored_whole() -> None:
    assert restored("package.json", '{"scripts": {}}', "{") == '{"scripts": {}}'
    assert restored("package.json", '{"scripts": {}}', "[]") == '{"scripts": {}}'


PYPROJECT = """[project]
name = "shop"
dependencies = ["a"]

[tool.pytest.ini_options]
addopts = "--strict-markers"

[tool.ruff]
line-length = 100
"""


def test_pyproject_keeps_new_dependencies_and_gets_the_old_tools() -> None:
    new = PYPROJECT.replace('["a"]', '["a", "b"]').replace("--strict-markers", "-k nothing") + "[tool.tox]\nx = 1\n"
    merged = tomllib.loads(restored("pyproject.toml", PYPROJECT, new) or "")
    assert merged["project"]["dependencies"] == ["a", "b"]
    assert merged["tool"] == tomllib.loads(PYPROJECT)["tool"]


def test_pyproject_with_only_new_dependencies_is_the_new_file() -> None:
    new = "# comment\n" + PYPROJECT.replace('["a"]', '["a", "b"]')
    assert restored("pyproject.toml", PYPROJECT, new) == new


def test_settings_written_in_another_way_restore_the_whole_file() -> None:
    hidden = PYPROJECT.replace("[tool.pytest.ini_options]\naddopts", "[tool]\npytest.ini_options.addopts")
    hidden = hidden.replace("--strict-markers", "-k nothing")
    merged = restored("pyproject.toml", PYPROJECT, hidden)
    assert tomllib.loads(merged or "")["tool"] == tomllib.loads(PYPROJECT)["tool"]
    inline = 'tool.pytest.ini_options.addopts = "-k nothing"\n' + PYPROJECT.split("[tool.pytest")[0]
    assert restored("pyproject.toml", PYPROJECT, inline) == PYPROJECT
    quoted = PYPROJECT + '[project.entry-points]\npytest11 = {x = "evil"}\n'
    assert restored("pyproject.toml", PYPROJECT, quoted) == PYPROJECT


def test_a_header_inside_a_string_is_no_table() -> None:
    old = PYPROJECT + '[tool.poe.tasks]\ntest = """\n[project]\npytest\n"""\n'
    new = old.replace("\npytest\n", "\ntrue\n").replace('["a"]', '["b"]')
    merged = tomllib.loads(restored("pyproject.toml", old, new) or "")
    assert merged["tool"] == tomllib.loads(old)["tool"]


def test_a_new_pytest_plugin_entry_point_is_removed() -> None:
    new = PYPROJECT + '[project.entry-points.pytest11]\nx = "evil"\n'
    assert "evil" not in (restored("pyproject.toml", PYPROJECT, new) or "")


def test_a_new_pyproject_keeps_its_dependencies_only() -> None:
    merged = tomllib.loads(restored("pyproject.toml", None, PYPROJECT) or "")
    assert merged == {"project": {"name": "shop", "dependencies": ["a"]}}


CARGO = '[package]\nname = "shop"\n\n[dependencies]\nserde = "1"\n\n[[test]]\nname = "all"\n'


def test_cargo_keeps_new_dependencies_and_gets_the_old_targets() -> None:
    new = CARGO.replace('serde = "1"', 'serde = "1"\nrand = "0.8"').replace('"all"', '"all"\nharness = false')
    merged = tomllib.loads(restored("Cargo.toml", CARGO, new) or "")
    assert merged["dependencies"] == {"serde": "1", "rand": "0.8"}
    assert merged["test"] == [{"name": "all"}]


def test_cargo_settings_that_switch_tests_off_restore_the_whole_file() -> None:
    assert restored("Cargo.toml", CARGO, CARGO + "[lib]\ntest = false\n") == CARGO
    assert restored("Cargo.toml", CARGO, CARGO.replace('"shop"', '"shop"\nautotests = false')) == CARGO


def test_setup_cfg_and_tox_keep_new_dependencies() -> None:
    old = "[metadata]\nname = shop\n[options]\ninstall_requires =\n    a\n[tool:pytest]\naddopts = -q\n"
    new = old.replace("    a\n", "    a\n    b\n").replace("-q", "-k nothing")
    parser = configparser.ConfigParser()
    parser.read_string(restored("setup.cfg", old, new) or "")
    assert parser["options"]["install_requires"].split() == ["a", "b"]
    assert parser["tool:pytest"]["addopts"] == "-q"

    old = "[tox]\nenvlist = py\n\n[testenv]\ndeps =\n    pytest\ncommands =\n    pytest\n"
    new = old.replace("    pytest\ncommands", "    pytest\n    b\ncommands").replace("    pytest\n", "    true\n")
    new = old.replace("    pytest\ncommands =\n    pytest", "    pytest\n    b\ncommands =\n    true")
    parser = configparser.ConfigParser()
    parser.read_string(restored("tox.ini", old, new + "[pytest]\naddopts = -k x\n") or "")
    assert parser["testenv"]["deps"].split() == ["pytest", "b"]
    assert parser["testenv"]["commands"].split() == ["pytest"]
    assert not parser.has_section("pytest")


RUST = """pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn adds() { assert_eq!(add(1, 2), 3, "}}{"); }
}
"""


def test_tests_inside_a_rust_file_are_restored_without_its_code() -> None:
    new = RUST.replace("a + b", "a - b").replace("3,", "-1,")
    assert restored("src/lib.rs", RUST, new) == RUST.replace("a + b", "a - b")
    assert as_after(FileChange("src/lib.rs", RUST.encode(), new.encode())) == RUST.replace("3,", "-1,").encode()
    assert "mod tests" not in (restored("src/lib.rs", None, new) or "mod tests")
    assert "assert_eq" in (restored("src/lib.rs", RUST, "pub fn add() {}\n") or "")
