"""`ralph sandbox`: what people type to look into the sandbox, with the real bubblewrap."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph.config.layers import load
from ralph.workspace.settings_check import sandbox_misfits
from support.cli import Completed
from support.loops import LoopProject, finish, run_ralph, short, start_ralph
from support.terminals import Terminal

pytestmark = pytest.mark.needs("bwrap")
GET = """import urllib.request, sys
for url in sys.argv[1:]:
    try: urllib.request.urlopen(url, timeout=10)
    except Exception as error: print(error)
"""
CURIOUS = """stories:
  US-001:
    - implement:
        - run: python3 get.py https://one.example/ https://one.example/ https://pypi.org/simple/
        - write: {path: src/said.txt, text: said}
        - claim
"""
SLOW = "stories:\n  US-001:\n    - implement: [{run: sleep 60}, claim]\n"


@pytest.fixture(autouse=True)
def _default_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPH_SANDBOX", raising=False)


def project_of(tmp_path: Path, script: str = CURIOUS) -> LoopProject:
    project = LoopProject.make(tmp_path / "p", short("tasks.json")._replace(script=script))
    project.write("get.py", GET)
    project.git("add", "get.py")
    project.git("commit", "-q", "-m", "a program")
    return project


@pytest.fixture
def project(tmp_path: Path) -> LoopProject:
    return project_of(tmp_path)


def sandbox(project: LoopProject, *arguments: str, stdin: bytes = b"", **env: str) -> Completed:
    command = [sys.executable, "-W", "error", "-m", "ralph", "sandbox", *arguments]
    more = project.env | env
    done = subprocess.run(
        command, cwd=project.root, env=more, input=stdin, capture_output=True, timeout=60, check=False
    )
    return Completed(done.returncode, done.stdout.decode(), done.stderr.decode())


def clone_record(project: LoopProject) -> list[Path]:
    return list(project.state.glob("*/plans/*/clone.json"))


# --- status ----------------------------------------------------------------------------------------------------------


def test_status_says_which_sandbox_why_and_what_it_lets_through(project: LoopProject) -> None:
    with (project.root / ".ralph" / "config.yaml").open("a") as config:
        config.write("sandbox: {allow_hosts: [pypi, 'localhost:5432'], setup: 'touch ~/ready'}\n")
    shown = sandbox(project, "status").out
    assert shown.startswith("sandbox    bubblewrap ")
    assert "the strongest that works here (`sandbox: auto`)" in shown
    assert "bwrap   usable: bubblewrap" in shown
    assert "pypi (pypi.org, files.pythonhosted.org): sandbox.allow_hosts (" in shown
    assert "config.yaml:" in shown
    assert "2000 processes" in shown
    assert "in a clone; your checkout is advanced at the end" in shown
    assert "pending: touch ~/ready" in shown
    assert sandbox(project, "exec", "--", "test", "-f", f"{project.home}/ready").code == 0
    assert "done: touch ~/ready" in sandbox(project, "status").out


def test_status_as_json_has_every_kind_with_the_reason_it_cannot_be_used(project: LoopProject) -> None:
    found = sandbox(project, "status", "--json", PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin").json
    assert found["backend"] == "bwrap"
    kinds = {kind["name"]: kind for kind in found["backends"]}
    assert list(kinds) == ["bwrap", "srt", "podman", "docker", "sbx"]
    assert all(kind["is_usable"] or kind["why_not"] for kind in kinds.values())
    assert kinds["srt"]["hint"] == "npm install -g @anthropic-ai/sandbox-runtime"


def test_status_without_a_sandbox_says_so(project: LoopProject) -> None:
    shown = sandbox(project, "--no-sandbox").out
    assert shown.startswith("sandbox    none\n")
    assert "in your checkout: there is no sandbox" in shown


def test_status_works_without_a_plan(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "ralph", "sandbox"], cwd=empty, capture_output=True, timeout=60, check=True
    )
    assert b"bubblewrap" in done.stdout
    assert b"workspace" not in done.stdout


# --- exec ------------------------------------------------------------------------------------------------------------


def test_a_command_runs_in_the_clone_with_its_own_streams_and_exit_code(project: LoopProject) -> None:
    script = "cat; echo problem >&2; git log -1 --format=%s; echo new > made.txt; cat made.txt; exit 7"
    done = sandbox(project, "exec", "--", "sh", "-c", script, stdin=b"given\n")
    assert (done.code, done.out) == (7, "given\na program\nnew\n")
    assert done.err.startswith("problem\nwhat was changed there is not kept: ")
    assert not (project.root / "made.txt").exists()
    assert project.git("branch", "--list", "ralph/*") == ""
    assert clone_record(project) == []


def test_the_home_folder_and_the_state_are_out_of_reach(project: LoopProject) -> None:
    (project.home / ".ssh").mkdir()
    (project.home / ".ssh" / "id_ed25519").write_text("secret")
    done = sandbox(
        project, "exec", "--", "sh", "-c", f"cat ~/.ssh/id_ed25519; ls {project.state}; env", SECRET_KEY="s3"
    )
    assert "No such file" in done.err
    assert "s3" not in done.out
    assert "trust.json" not in done.out


def test_a_program_that_does_not_exist_has_the_exit_code_of_a_shell(project: LoopProject) -> None:
    done = sandbox(project, "exec", "no-such-program")
    assert done.code == 127
    assert "no-such-program" in done.err


def test_a_refused_host_is_named_with_the_way_to_allow_it(project: LoopProject) -> None:
    done = sandbox(project, "exec", "--", "python3", "get.py", "https://one.example/")
    assert "the sandbox refused one.example:443: the host is not on the list" in done.err
    assert "ralph config set sandbox.allow_hosts one.example" in sandbox(project, "log", "shell").out


def test_a_check_does_not_reach_the_hosts_of_the_agent(project: LoopProject) -> None:
    command = ["--", "python3", "get.py", "https://api.anthropic.com/"]
    with (project.root / ".ralph" / "config.yaml").open("a") as config:
        config.write("fallback: [claude]\n")
    as_check = sandbox(project, "exec", "--check", *command)
    assert "the sandbox refused api.anthropic.com:443" in as_check.err
    assert "refused" not in sandbox(project, "exec", *command).err


def test_no_command_and_no_sandbox_are_clear_errors(project: LoopProject) -> None:
    assert "no command" in sandbox(project, "exec").err
    done = sandbox(project, "exec", "--no-sandbox", "--", "true")
    assert done.code == 78
    assert "the settings say `sandbox: none`" in done.err


def test_a_terminated_command_leaves_nothing_behind(project: LoopProject) -> None:
    process = start_ralph(project, "sandbox", "exec", "--", "sh", "-c", "sleep 4711 & echo begun; wait")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 143
    assert clone_record(project) == []
    assert "4711" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


# --- shell -----------------------------------------------------------------------------------------------------------


def test_a_shell_has_job_control_and_follows_the_size_of_the_window(project: LoopProject) -> None:
    terminal = Terminal(project, "sandbox", "shell", SHELL="/bin/bash")
    terminal.until("leave with `exit`")
    terminal.press(b"echo $((6*7000))\n")
    terminal.until("42000")
    terminal.press(b"sleep 100\n")
    time.sleep(0.5)
    terminal.press(b"\x03")
    terminal.press(b"echo code $?\n")
    terminal.until("code 130")
    terminal.press(b"sleep 100\n")
    time.sleep(0.5)
    terminal.press(b"\x1a")
    terminal.until("Stopped")
    terminal.resize(77, 21)
    terminal.press(b"stty size\n")
    terminal.until("21 77")
    terminal.press(b"kill -9 %1; exit 5\nexit 5\n")
    assert terminal.end() == 5
    assert "no job control" not in terminal.plain


def test_a_closed_window_ends_the_shell(project: LoopProject) -> None:
    terminal = Terminal(project, "sandbox", "shell", SHELL="/bin/sh")
    terminal.until("leave with `exit`")
    terminal.press(b"echo $((6*7000)); sleep 4712\n")
    terminal.until("42000")
    assert terminal.hang_up() == 129
    assert clone_record(project) == []
    assert "4712" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_a_shell_needs_a_terminal(project: LoopProject) -> None:
    done = sandbox(project, "shell")
    assert done.code == 64
    assert "ralph sandbox exec" in done.err


# --- a run: its log, and what is in the way of exec and reset --------------------------------------------------------


def test_the_log_of_a_run_groups_hosts_and_shows_the_exact_commands(project: LoopProject) -> None:
    ended = run_ralph(project, "run", "--plain", "--once")
    assert "the sandbox refused one.example:443, pypi.org:443; `ralph sandbox log` shows how" in ended.out
    report = run_ralph(project, "report").out
    assert "one.example:443, 2 times: the host is not on the list" in report
    assert "ralph config set sandbox.allow_hosts one.example\n" in report
    for form in ("--markdown", "--html"):
        assert "ralph config set sandbox.allow_hosts pypi" in run_ralph(project, "report", form, "-").out
    assert {host["host"] for host in run_ralph(project, "report", "--json").json["refused_hosts"]} == {
        "one.example",
        "pypi.org",
    }
    shown = sandbox(project, "log").out
    assert "one.example:443: 2 times, the host is not on the list" in shown
    assert "allow it: ralph config set sandbox.allow_hosts one.example\n" in shown
    assert "allow it: ralph config set sandbox.allow_hosts pypi\n" in shown
    assert "allow all of them: ralph config set sandbox.allow_hosts one.example,pypi" in shown
    everything = sandbox(project, "log", "--all").out.splitlines()
    assert len([line for line in everything if "refused CONNECT one.example:443" in line]) == 2
    as_json = sandbox(project, "log", "--json").json
    assert {one["host"]: one["count"] for one in as_json["refused"]} == {"one.example": 2, "pypi.org": 1}
    allow = as_json["refused"][0]["allow"].split()
    assert run_ralph(project, *allow[1:]).code == 0
    assert "one.example: sandbox.allow_hosts (" in sandbox(project, "status").out


def test_a_run_without_a_sandbox_has_no_log(project: LoopProject) -> None:
    run_ralph(project, "run", "--plain", "--once", "--no-sandbox")
    done = sandbox(project, "log")
    assert done.code == 64
    assert "it ran without a sandbox" in done.err


def test_the_sandbox_of_a_live_run_is_neither_opened_nor_removed(tmp_path: Path) -> None:
    project = project_of(tmp_path, SLOW)
    process = start_ralph(project)
    try:
        deadline = time.monotonic() + 30
        while b"AgentStarted" not in b"".join(path.read_bytes() for path in project.journals()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for arguments in (("exec", "--", "true"), ("reset",), ("reset", "--force")):
            done = sandbox(project, *arguments)
            assert done.code == 73, done.err
            assert "`ralph stop`" in done.err
    finally:
        process.send_signal(signal.SIGTERM)
        finish(process)


# --- reset -----------------------------------------------------------------------------------------------------------


def test_reset_removes_what_the_sandbox_keeps(project: LoopProject) -> None:
    run_ralph(project, "run", "--plain", "--once")
    kept = [folder for name in ("clones", "sandbox") for folder in project.state.glob(f"*/{name}")]
    assert len(kept) == 2
    head = project.git("rev-parse", "HEAD")
    done = sandbox(project, "reset")
    assert done.code == 0
    assert "removed " in done.out
    assert not [folder for name in ("clones/*", "sandbox") for folder in project.state.glob(f"*/{name}")]
    assert project.git("worktree", "list").count("\n") == 0
    assert project.git("rev-parse", "HEAD") == head
    assert sandbox(project, "reset").err == "there was nothing to remove\n"


def test_reset_keeps_work_that_the_checkout_does_not_have(project: LoopProject) -> None:
    run_ralph(project, "run", "--plain", "--workspace", "clone")
    refused = sandbox(project, "reset")
    assert refused.code == 78
    assert "that your checkout does not have" in refused.err
    branch = refused.err.partition("branch ")[2].split()[0]
    assert f"`git merge {branch}`" in refused.err
    assert f"on branch {branch}" in sandbox(project, "status").out
    tip = project.git("rev-parse", branch)
    done = sandbox(project, "reset", "--force")
    assert f"kept branch {branch}" in done.out
    assert project.git("merge-base", tip, branch).strip() == tip.strip(), "with what was not committed on top"
    assert project.git("show", f"{branch}:src/said.txt").strip() == "said"
    assert run_ralph(project, "status").code == 0


# --- test ------------------------------------------------------------------------------------------------------------


def test_escapes_are_tried_and_all_refused(project: LoopProject) -> None:
    done = sandbox(project, "test", "--backend", "bwrap", "--json")
    rows = done.json["bwrap"]["rows"]
    assert done.code == 0, [row for row in rows if row["result"] not in ("refused", "works", "skipped")]
    assert len([row for row in rows if row["result"] == "refused"]) >= 30
    assert "git" in {row["name"] for row in rows if row["result"] == "works"}


def test_an_unknown_kind_cannot_be_tested(project: LoopProject) -> None:
    done = sandbox(project, "test", "--backend", "chroot")
    assert done.code == 64
    assert "one of bwrap, srt" in done.err


def test_the_commands_have_help_with_an_example(project: LoopProject) -> None:
    for action in ("status", "shell", "exec", "log", "reset", "test"):
        assert "ralph sandbox" in sandbox(project, action, "--help").out.partition("examples:")[2]


# --- before a run ----------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_the_sandbox_and_where_the_agent_works(project: LoopProject) -> None:
    shown = run_ralph(project, "run", "--dry-run").out
    assert "\nsandbox    bubblewrap " in shown
    assert "\nworkspace  in a clone; your checkout is advanced at the end\n" in shown
    assert "may: everything inside its sandbox (bubblewrap" in shown
    open_air = run_ralph(project, "run", "--dry-run", "--no-sandbox").out
    assert "\nsandbox    sandbox: none, as the settings say\n" in open_air
    assert "\nworkspace  in your checkout: there is no sandbox\n" in open_air
    missing = run_ralph(project, "run", "--dry-run", "--sandbox", PATH=str(Path(sys.executable).parent)).out
    assert "\nsandbox    the run would not start: no sandbox: " in missing


def test_a_wrong_host_is_refused_before_anything_starts(project: LoopProject) -> None:
    done = run_ralph(project, "run", "--plain", "--allow-hosts", "https://example.org")
    assert done.code == 64
    assert "write only the host" in done.err
    with (project.root / ".ralph" / "config.yaml").open("a") as config:
        config.write("sandbox: {allow_hosts: ['*']}\n")
    done = run_ralph(project, "run", "--plain")
    assert done.code == 65
    assert "config.yaml:" in done.err
    assert "to allow all, set sandbox.network to open" in done.err


def test_an_open_network_is_said_at_each_run(project: LoopProject) -> None:
    done = run_ralph(project, "run", "--plain", "--once", RALPH_SANDBOX_NETWORK="open")
    assert "THE NETWORK IS OPEN" in done.err
    assert "NETWORK OPEN" in done.out


def test_the_settings_of_its_page_are_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    keys = re.findall(r"`((?:sandbox|allow_paths|agent)[a-z_.]*): ([^`]+)`", page)
    inline = [f"{': {'.join(key.split('.'))}: {value}{'}' * key.count('.')}" for key, value in keys]
    assert len(blocks) + len(inline) > 10
    (tmp_path / ".ralph").mkdir()
    for text in (*blocks, *inline):
        (tmp_path / ".ralph" / "config.yaml").write_text(text)
        settings = load(root=tmp_path, layout="", name=None, env={}, flags={})
        assert settings.warnings == (), text
        assert not list(sandbox_misfits(settings)), text
