"""`ralph pr` on real runs, with a real remote and a stand-in for `gh` that writes down how it was called."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.report.pull_request import text_for_github
from ralph.state.places import state_home
from support.cli import Completed
from support.proven import Proven, write

GH = """\
#!/bin/sh
printf '%s\\n' "$@" >"$GH_CALLS/argv"
cat >"$GH_CALLS/body"
printf '%s' "$GH_PROMPT_DISABLED" >"$GH_CALLS/quiet"
[ -z "$GH_COMPLAINT" ] || { echo "$GH_COMPLAINT" >&2; exit "$GH_CODE"; }
echo "Creating pull request for words into main" >&2
echo "https://github.example/acme/shop/pull/7"
"""
WORK = [write("src/one.py", "ONE = 1\n"), "claim"]


class Hosted:
    """A project whose run worked on a branch, with a bare remote and a `gh`."""

    def __init__(self, folder: Path, title: str = "Tell @ada about one", branch: str = "words", **stories: Any) -> None:
        self.made = Proven(folder, stories=[{"title": title, "verify": ["test -f src/one.py"]}])
        self.remote = folder / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.remote)], check=True)
        self.made.git("remote", "add", "origin", str(self.remote))
        self.made.git("push", "-q", "-u", "origin", "main")
        if branch != "main":
            self.made.git("switch", "-q", "-c", branch)
        self.made.run(*(["-n", "1"] if stories else []), **(stories or {"US_001": [WORK]}))
        self.calls = folder / "calls"
        self.calls.mkdir()
        gh = folder / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH)
        gh.chmod(0o755)
        self.env = {
            "PATH": f"{gh.parent}{os.pathsep}{os.environ['PATH']}",
            "GH_CALLS": str(self.calls),
            "RALPH_STATE_HOME": str(state_home(os.environ)),  # of the run; every test has another
        }

    def pr(self, *arguments: str, **env: str) -> Completed:
        return self.made.ask("pr", *arguments, env={**self.env, **env})

    def on_remote(self) -> str:
        return self.made.git("ls-remote", "--heads", "origin", "words")

    @property
    def called(self) -> list[str]:
        path = self.calls / "argv"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Hosted:
    return Hosted(tmp_path_factory.mktemp("hosted"))


@pytest.fixture(autouse=True)
def _no_calls_yet(request: pytest.FixtureRequest) -> None:
    if "hosted" in request.fixturenames:
        for path in request.getfixturevalue("hosted").calls.iterdir():
            path.unlink()


def test_a_dry_run_prints_title_and_text_and_starts_nothing(hosted: Hosted) -> None:
    done = hosted.pr("--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("Tell @ada about one\n# Run ")
    assert "@<!-- -->ada" in done.out.partition("\n")[2]  # nobody is notified
    assert "from words into main on origin; words is not pushed; --push does it" in done.err
    assert (hosted.called, hosted.on_remote()) == ([], "")
    assert json.loads(hosted.pr("--dry-run", "--json").out)["is_pushed"] is False


def test_nothing_is_pushed_unless_the_user_says_so(hosted: Hosted) -> None:
    done = hosted.pr()
    assert done.code == 78
    assert "origin does not have words as it is here" in done.err
    assert "git push -u origin words" in done.err
    assert (hosted.called, hosted.on_remote()) == ([], "")


def test_a_pull_request_has_the_report_as_its_text(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    done = hosted.pr("--push", "--draft")
    assert (done.code, done.out) == (0, "https://github.example/acme/shop/pull/7\n"), done.err
    assert hosted.on_remote().split()[0] == hosted.made.git("rev-parse", "words")
    title = ["--title", "Tell @ada about one"]
    assert hosted.called == ["pr", "create", "--base", "main", "--head", "words", *title, "--body-file", "-", "--draft"]
    body = (hosted.calls / "body").read_text()
    assert body.startswith("# Run ")
    assert "- **US-001** Tell @<!-- -->ada about one" in body
    assert (hosted.calls / "quiet").read_text() == "1"
    assert json.loads(hosted.pr("--json").out) == {
        "url": "https://github.example/acme/shop/pull/7",
        "title": "Tell @ada about one",
        "branch": "words",
        "base": "main",
    }


def test_a_second_one_is_offered_as_a_comment(hosted: Hosted) -> None:
    said = 'a pull request for branch "words" already exists: https://github.example/acme/shop/pull/7'
    hosted.made.git("push", "-q", "origin", "words")
    done = hosted.pr(GH_COMPLAINT=said, GH_CODE="1")
    hosted.made.git("push", "-q", "origin", ":words")
    assert done.code == 78
    assert "hint: add the report to it: `ralph pr --comment https://github.example/acme/shop/pull/7`" in done.err
    done = hosted.pr("--comment", "7")
    assert (done.code, done.out) == (0, "https://github.example/acme/shop/pull/7\n")
    assert hosted.called == ["pr", "comment", "7", "--body-file", "-"]


def test_what_gh_complains_about_is_passed_on(hosted: Hosted) -> None:
    done = hosted.pr(
        "--comment", "7", GH_COMPLAINT="To get started with GitHub CLI, please run: gh auth login", GH_CODE="4"
    )
    assert done.code == 78
    assert "gh pr comment: To get started with GitHub CLI" in done.err
    assert "hint: `gh auth login`, or set GH_TOKEN" in done.err


def test_without_gh_it_says_where_to_get_it(hosted: Hosted) -> None:
    done = hosted.pr("--push", PATH=os.environ["PATH"])
    assert done.code == 78
    assert "is not installed" in done.err
    assert "https://cli.github.com" in done.err
    assert hosted.on_remote() == ""


def test_a_gh_that_the_project_brings_along_is_not_started(hosted: Hosted) -> None:
    own = hosted.made.root / "gh"
    own.write_text("#!/bin/sh\ntouch started\n")
    own.chmod(0o755)
    done = hosted.pr(PATH=f"{own.parent}{os.pathsep}{os.environ['PATH']}")
    own.unlink()
    assert "is not installed" in done.err
    assert not (hosted.made.root / "started").exists()


def test_an_agent_cannot_open_one(hosted: Hosted) -> None:
    done = hosted.pr("--push", RALPH_LOOP="1")
    assert done.code == 78
    assert "an agent in a loop cannot open a pull request" in done.err
    assert (hosted.called, hosted.on_remote()) == ([], "")


def test_a_remote_that_cannot_be_reached_or_refuses_is_named(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    hook = hosted.remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no pushes on Fridays >&2\nexit 1\n")
    hook.chmod(0o755)
    done = hosted.pr("--push")
    assert done.code == 78
    assert "could not push words to origin: " in done.err
    assert hosted.called == []
    hosted.remote.rename(tmp_path / "gone")
    assert "cannot reach origin" in hosted.pr("--push").err
    hosted.made.git("remote", "remove", "origin")
    assert "the repository has no remote" in hosted.pr().err


def test_work_on_the_main_branch_or_no_work_makes_none(tmp_path: Path, hosted: Hosted) -> None:
    done = hosted.pr("--base", "words")
    assert done.code == 64
    assert "the run worked on words itself" in done.err
    idle = Hosted(tmp_path, US_001=[["claim"]])
    done = idle.pr("--push")
    assert done.code == 64
    assert "has no accepted story with a commit" in done.err


def test_work_on_the_main_branch_goes_from_the_branch_that_the_hint_creates(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, branch="main")
    done = hosted.pr("--push")
    assert done.code == 64
    assert "the run worked on main itself" in done.err
    assert "`git switch -c NAME`, then `ralph pr`" in done.err
    assert "`git branch -f main origin/main`" in done.err
    hosted.made.git("switch", "-q", "-c", "other", "origin/main")
    assert hosted.pr("--push").code == 64, "the work is not on it"
    hosted.made.git("switch", "-q", "-c", "words", "main")
    hosted.made.git("branch", "-q", "-f", "main", "origin/main")
    done = hosted.pr("--push")
    assert done.code == 0, done.err
    assert hosted.called[:6] == ["pr", "create", "--base", "main", "--head", "words"]
    assert hosted.on_remote().split()[0] == hosted.made.git("rev-parse", "words")


def test_a_dry_run_says_what_is_unknown(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, branch="main")
    done = hosted.pr("--dry-run")
    assert (done.code, done.out.startswith("Tell @ada about one\n# Run ")) == (0, True), done.err
    assert "branch: unknown, base: main, remote: origin" in done.err
    assert "missing: the run worked on main itself" in done.err
    hosted.made.git("remote", "remove", "origin")
    hosted.made.git("switch", "-q", "-c", "words")
    hosted.made.git("branch", "-q", "-D", "main")
    done = hosted.pr("--dry-run")
    assert (done.code, done.out.startswith("Tell @ada about one\n# Run ")) == (0, True), done.err
    assert "branch: words, base: unknown, remote: unknown" in done.err
    assert "missing: the repository has no remote; `git remote add origin URL`" in done.err


def test_a_long_report_is_cut_where_github_would_refuse_it() -> None:
    text = text_for_github("line\n" * 20_000)
    assert len(text) < 65_536
    assert text.endswith("`ralph report --markdown -` prints all of it\n")
