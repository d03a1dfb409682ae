"""The GitHub Action: its steps are read from action.yml and really run, with a bare remote and a stand-in for `gh`.

The steps of other actions (`uses`) are not run, and Ralph is the one of this clone, except where its installation is
tested.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.proven import Proven, write
from support.tools import WHEELS

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
INPUTS = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
URL = "https://github.example/acme/shop/pull/7"
GH = f"""\
#!/bin/sh
printf '%s ' "$@" >>"$GH_CALLS"
case "$1 $2" in
"auth git-credential" | "auth setup-git") ;;
"pr list") cat "$GH_OPEN" 2>/dev/null ;;
*) cat >"$GH_CALLS.body"; echo "{URL}" ;;
esac
echo >>"$GH_CALLS"
"""
WORK = [write("src/one.py", "ONE = 1\n"), "claim"]


class Runner:
    """A machine of continuous integration that has checked the project out."""

    def __init__(self, folder: Path, **stories: Any) -> None:
        self.made = Proven(folder, stories=[{"title": "One", "verify": ["test -f src/one.py"]}])
        self.script = self.made.script(**(stories or {"US_001": [WORK]}))
        self.remote = folder / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.remote)], check=True)
        self.made.git("remote", "add", "origin", str(self.remote))
        self.made.git("push", "-q", "-u", "origin", "main")
        self.calls = folder / "gh-calls"
        (folder / "bin").mkdir()
        gh = folder / "bin" / "gh"
        gh.write_text(GH)
        gh.chmod(0o755)
        (folder / "bin" / "ralph").symlink_to(Path(sys.executable).parent / "ralph")
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        self.temp = folder / "runner temp"
        self.temp.mkdir()
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RALPH_")},
            **{name: str(path) for name, path in self.files.items()},
            "PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin",
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
            "GH_CALLS": str(self.calls),
            "GH_OPEN": str(folder / "open"),
            "RALPH_SANDBOX": "none",
        }
        self.values: dict[str, str] = {}

    def act(self, **inputs: str) -> int:
        """Run the steps after the installation. The exit code of the first one that fails."""
        given = {"args": f"--agent-script '{self.script}' --no-review"} | inputs
        self.values = {f"inputs.{name}": value for name, value in (INPUTS | _dashed(given)).items()}
        failed = 0
        for step in STEPS:
            if "run" in step and step["name"] != "Install Ralph" and self.applies(step.get("if", ""), failed):
                code = self.step(step).returncode
                failed = failed or code
        return failed

    def step(self, step: dict[str, Any], **env: str) -> subprocess.CompletedProcess[str]:
        output = self.files["GITHUB_OUTPUT"]
        output.write_text("")
        given = {name: self.filled(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.made.root,
            env={**self.env, **given, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step.get('id')}.outputs.{name}"] = value
        return done

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: self.values.get(found[1], ""), text)

    def applies(self, condition: str, failed: int) -> bool:
        if failed and "always()" not in condition:
            return False
        named = re.search(r"(\S+) != '(\w*)'", condition)
        return named is None or self.values.get(named[1], "") != named[2]

    def output(self, name: str) -> str:
        return self.filled(ACTION["outputs"][name]["value"])

    def on_remote(self) -> list[str]:
        return self.made.git("ls-remote", "--heads", "origin").split()[1::2]

    @property
    def called(self) -> list[str]:
        return [line.strip() for line in self.calls.read_text().splitlines()] if self.calls.exists() else []


def _dashed(inputs: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in inputs.items()}


@pytest.mark.slow
def test_a_finished_plan_is_pushed_and_opened_as_a_pull_request(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert runner.act() == 0
    assert [runner.output(name) for name in ("exit-code", "done", "total", "branch")] == ["0", "1", "1", "ralph/ci"]
    assert runner.output("url") == URL
    assert runner.on_remote() == ["refs/heads/main", "refs/heads/ralph/ci"]
    assert runner.made.git("show", "origin/ralph/ci:src/one.py") == "ONE = 1"
    assert "pr create --base main --head ralph/ci --title One --body-file -" in runner.called
    body = (tmp_path / "gh-calls.body").read_text()
    assert "- **US-001** One" in body
    assert "- **US-001** One" in runner.files["GITHUB_STEP_SUMMARY"].read_text()
    report = runner.temp / "ralph-report"
    assert {"report.md", "report.html", "report.json", "run"} == {path.name for path in report.iterdir()}
    assert (report / "run" / "events.jsonl").exists()

    # The workflow runs again, on a fresh machine: it goes on from the branch, where nothing is left to do. And so it
    # does where the state is kept.
    for is_fresh in (True, False):
        runner.made.git("switch", "-q", "main")
        runner.made.git("branch", "-D", "ralph/ci")
        if is_fresh:
            shutil.rmtree(runner.temp)
            runner.temp.mkdir()
        runner.calls.unlink()
        assert runner.act() == 0
        assert runner.output("done") == "1"
        assert runner.made.read("src/one.py") == "ONE = 1\n"
        assert not [line for line in runner.called if line.startswith("pr create")]


@pytest.mark.slow
def test_an_unfinished_plan_fails_the_job_after_its_report(tmp_path: Path) -> None:
    runner = Runner(tmp_path, US_001=[["claim"]])
    code = runner.act(args=f"--agent-script '{tmp_path}/script.yaml' --no-review -n 1", pull_request="open")
    assert code == int(runner.output("exit-code")) != 0
    assert runner.output("done") == "0"
    assert (runner.temp / "ralph-report" / "report.md").exists()
    assert runner.on_remote() == ["refs/heads/main"]
    assert not [line for line in runner.called if line.startswith("pr ")]


@pytest.mark.slow
def test_an_open_pull_request_gets_a_comment(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    step = next(step for step in STEPS if step.get("id") == "publish")
    assert runner.act(pull_request="none") == 0
    runner.values["github.event.pull_request.number"] = "12"
    runner.values["inputs.pull-request"] = "comment"
    assert runner.step(step).returncode == 0
    assert "pr comment 12 --body-file -" in runner.called
    assert runner.on_remote() == ["refs/heads/main"]
    (tmp_path / "open").write_text(URL)
    runner.values["inputs.pull-request"] = "open"
    assert runner.step(step).returncode == 0
    assert f"pr comment {URL} --body-file -" in runner.called
    assert "refs/heads/ralph/ci" in runner.on_remote()
    runner.values["inputs.pull-request"] = "comment"
    runner.values["github.event.pull_request.number"] = ""
    assert "needs a workflow that a pull request started" in runner.step(step).stderr
    runner.values["inputs.pull-request"] = "both"
    assert "it must be open, comment or none" in runner.step(step).stderr


def test_the_token_is_not_in_the_step_in_which_the_agent_works() -> None:
    by_name = {step.get("name"): step for step in STEPS}
    assert "GH_TOKEN" not in by_name["Run the plan"]["env"]
    assert {name for name, step in by_name.items() if "GH_TOKEN" in step.get("env", {})} == {
        "Switch to the branch",
        "Publish the work",
    }


def test_no_input_becomes_a_part_of_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", "")
    named = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", (ROOT / "action.yml").read_text()))
    assert named | {"artifact"} == set(INPUTS)
    used = {name for step in STEPS for name in re.findall(r"packaging/action/(\w+\.sh)", step.get("run", ""))}
    assert used == {path.name for path in (ROOT / "packaging" / "action").iterdir()}


def test_arguments_are_split_as_words_and_never_run(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    ralph = tmp_path / "bin" / "ralph"
    ralph.unlink()
    ralph.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >>"$GH_CALLS.argv"\n[ "$1" = run ]\n')
    ralph.chmod(0o755)
    step = next(step for step in STEPS if step.get("id") == "run")
    done = runner.step(step, PLAN="a b", AGENT="", ARGS="--max-time 2h --note 'two words $(touch ran) *'")
    assert done.returncode == 0, done.stderr
    argv = (tmp_path / "gh-calls.argv").read_text().splitlines()
    expected = ["run", "--plain", "--trust", "-f", "a b", "--max-time", "2h", "--note", "two words $(touch ran) *"]
    assert argv[: len(expected)] == expected
    assert not (runner.made.root / "ran").exists()


@pytest.mark.slow
@pytest.mark.needs("wheels")
def test_it_installs_ralph_from_its_own_repository(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    step = next(step for step in STEPS if step.get("name") == "Install Ralph")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS), "PIP_CONFIG_FILE": os.devnull}
    done = runner.step(step, PYTHON=sys.executable, VERSION=".", EXTRAS="", **settings)
    assert done.returncode == 0, done.stderr
    folder = runner.files["GITHUB_PATH"].read_text().strip()
    assert subprocess.run([f"{folder}/ralph", "--version"], capture_output=True, text=True, check=True).stdout
    assert json.dumps(done.stdout).count("ralph 0") == 1
