"""`ralph agents list`, `show` and `test`: with the agent of the example, and with the real Claude Code client."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ralph.agents.registry import AGENTS, agent
from ralph.core.agent_traits import traits_of
from ralph.trial.suite import judge_recording, load_recording
from support.cli import ralph_here
from support.clients import CLIENT
from support.plugins import install_acme, register

SILENT = '#!/bin/sh\n[ "$1" = --version ] && echo acme 1.2.0 && exit\necho \'{"type": "end", "ok": true}\'\n'


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_acme(tmp_path, monkeypatch)


def test_the_list_tells_what_is_installed_and_how_to_install_the_rest(acme: Path, tmp_path: Path) -> None:
    env = {"PATH": f"{acme.parent}:/usr/bin:/bin"}
    lines = {line.split()[0]: line for line in ralph_here("agents", "list", cwd=tmp_path, env=env).out.splitlines()}
    assert list(lines) == AGENTS.names()
    assert lines["acme"].endswith("1.2.0         no login       no hooks: use the sandbox")
    for name in AGENTS.built_in():
        if install := traits_of(agent(name)).install:
            assert lines[name].endswith((f"not installed: {install}", "guarded by hooks"))
    env["ACME_API_KEY"] = "x"
    assert "1.2.0         logged in" in ralph_here("agents", cwd=tmp_path, env=env).out


def test_scripts_get_what_is_known(acme: Path, tmp_path: Path) -> None:
    listed = {one["name"]: one for one in ralph_here("agents", "list", "--json", cwd=tmp_path).json}
    assert list(listed) == AGENTS.names()
    shown = ralph_here("agents", "show", "acme", "--json", cwd=tmp_path).json
    assert shown == listed["acme"]
    assert (shown["program"], shown["version"], shown["has_login"]) == (str(acme), "1.2.0", False)
    assert (shown["hooks"], shown["reports_usage"], shown["reports_cost"]) == (False, True, True)
    assert listed["command"]["has_login"] is None


def test_one_agent_is_shown_with_what_it_needs(acme: Path, tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    (home / ".acme").mkdir()
    (home / ".acme" / "key.json").write_text("{}")
    shown = ralph_here("agents", "show", "acme", cwd=tmp_path).out
    for text in (f"{acme} 1.2.0", f"{home}/.acme/key.json", "tokens and cost", "api.acme.example", "ACME_BASE_URL"):
        assert text in shown


def test_a_package_that_cannot_be_loaded_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path / "site", monkeypatch, "ralph-broken", "0.3", "[ralph.agents]\nbroken = no_such_module\n")
    done = ralph_here("agents", "list", cwd=tmp_path)
    assert done.code == 0
    assert "(package ralph-broken 0.3) cannot be loaded: No module named 'no_such_module'" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (("show", "cluade"), 64, ("unknown agent 'cluade'", "did you mean claude?")),
        (("test", "amce"), 64, ("unknown agent 'amce'", "did you mean acme?")),
        (("test", "acme", "--only", "storys"), 64, ("unknown scenario 'storys'", "one of stories, tools,")),
        (
            ("test", "acme", "--program", "./nothing"),
            78,
            ("/nothing is not on PATH", "correct --program, or leave it out"),
        ),
        (("test", "command"), 64, ("cannot be pointed at a scripted model", "no `rehearse(address)`")),
        (("test", "scripted"), 64, ("cannot be pointed at a scripted model", "no `rehearse(address)`")),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    arguments: tuple[str, ...], code: int, texts: tuple[str, ...], acme: Path, tmp_path: Path
) -> None:
    done = ralph_here("agents", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert all(text in done.err for text in texts), done.err


def test_a_missing_client_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    done = ralph_here("agents", "test", "codex", cwd=tmp_path, env={"PATH": "/nowhere"})
    assert done.code == 78
    assert traits_of(agent("codex")).install in done.err


@pytest.mark.slow
def test_a_scenario_that_fails_keeps_its_folder_and_names_it(acme: Path, tmp_path: Path) -> None:
    """A client that ends well after every error."""
    acme.write_text(acme.read_text().replace("ok=False, status=error.code", "ok=True"))
    done = ralph_here("agents", "test", "acme", "--program", "bin/acme", "--only", "key", cwd=tmp_path)
    assert done.code == 1
    assert "expected authentication, the reader understood: None" in done.out
    assert done.out.endswith("0 scenarios passed, 1 failed\n")
    [kept] = [line.partition("kept: ")[2] for line in done.out.splitlines() if "kept: " in line]
    assert Path(kept).parent == tmp_path
    assert {"project", "home", "state", "output", "requests.jsonl"} <= {path.name for path in Path(kept).iterdir()}


@pytest.mark.slow
def test_a_client_that_never_asks_the_model_does_not_pass_by_being_refused(acme: Path, tmp_path: Path) -> None:
    acme.write_text(SILENT)
    [mark] = ralph_here("agents", "test", "acme", "--only", "refusal", "--json", cwd=tmp_path).json
    assert [problem.partition(":")[0] for problem in mark["problems"]] == ["the client sent no request to the model"]


@pytest.mark.slow
def test_what_a_client_printed_can_be_recorded(acme: Path, tmp_path: Path) -> None:
    done = ralph_here("agents", "test", "acme", "--only", "key", "--record", "kept", cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    assert "Acme 1.2.0" in done.err
    assert "kept: " not in done.out
    recording = load_recording(tmp_path / "kept" / "acme" / "key.json")
    assert (recording.agent, recording.version, recording.scenario) == ("acme", "1.2.0", "key")
    assert judge_recording(agent("acme"), recording) == []
    assert not [*tmp_path.glob("ralph-trial-*")]


def test_a_client_in_the_home_folder_is_found_from_there_but_not_one_inside_a_project(tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    for folder in (home, tmp_path):
        program = folder / "bin" / "claude"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho 2.1.325\n")
        program.chmod(0o755)

    def found(folder: Path) -> str:
        env = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
        return str(ralph_here("agents", "show", "claude", "--json", cwd=folder, env=env).json["program"])

    assert found(home) == str(home / "bin" / "claude")
    assert found(tmp_path) == ""


@pytest.mark.client
@pytest.mark.slow
def test_the_real_claude_client(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.symlink_to(CLIENT)
    here = tmp_path / "here"
    here.mkdir()
    env = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    shown = ralph_here("agents", "show", "claude", "--json", cwd=here, env=env).json
    assert shown["program"] == str(program)
    assert shown["version"].startswith("2.")
    listed = ralph_here("agents", "list", cwd=here, env=env).out
    assert re.search(rf"^claude +{re.escape(shown['version'])} +no login +guarded by hooks$", listed, re.MULTILINE)
    done = ralph_here("agents", "test", "claude", "--only", "limit", "--only", "guard", cwd=here, env=env)
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 scenarios passed, 0 failed"), done.out
