"""`ralph run` where bubblewrap works: the agent in a clone behind a wall, the checkout left alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Completed, ralph, ralph_here

pytestmark = pytest.mark.needs("bwrap")

WORK = """\
        - append: {path: calc.py, text: "\\n\\ndef sub(a, b):\\n    return a - b\\n"}
        - append: {path: test_calc.py, text: "\\n\\ndef test_sub():\\n    assert calc.sub(3, 2) == 1\\n"}
"""
EAT = "python3 -c 'import time; x = bytearray(150_000_000); time.sleep(20)'"
REVIEW = "      review: [{verdict: {what: approved, by: request}}]\n"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        (root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
        (root / "test_calc.py").write_text("import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n")
        (root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.env\n")
        (root / "check.sh").write_text("! grep -q BROKEN *.py\n")
        assert ralph_here("init", "work", "--no-input", "--no-checks", cwd=root).code == 0
        self.check("sh check.sh")
        assert ralph_here("task", "add", "Subtract", "--criterion", "sub(3, 2) is 1", cwd=root).code == 0
        self.git("add", "-A")
        self.git("commit", "-qm", "begin")

    def check(self, *commands: str) -> None:
        assert ralph_here("config", "set", "checks", json.dumps(commands), cwd=self.root).code == 0

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def script(self, acts: str, review: str = REVIEW) -> None:
        path = self.root.parent / "script.yaml"
        path.write_text(f"stories:\n  '*':\n    - implement:\n{acts}        - claim: done\n{review}")

    def run(self, *words: str, env: dict[str, str] | None = None) -> Completed:
        script = self.root.parent / "script.yaml"
        return ralph("run", "--trust", "--agent", "scripted", "--agent-script", script, *words, cwd=self.root, env=env)

    def says(self, command: str) -> str:
        """Lines for the script: run a command inside, then do the work."""
        return f"        - run: {json.dumps(f'({command}) 2>&1 || true')}\n{WORK}"

    def said(self) -> str:
        """What commands of the last run printed, by the agent's own output."""
        last = max(Path(os.environ["HOME"]).rglob("runs/*/raw"))
        printed = []
        for log in sorted(last.glob("*.log")):
            for text in log.read_text().splitlines():
                event = json.loads(text) if text.startswith("{") else {}
                if event.get("type") == "user":
                    printed.append(str(event["message"]["content"][0].get("content", "")))
        return "\n".join(printed)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("RALPH_SANDBOX", raising=False)
    subprocess.run(["git", "config", "--global", "user.name", "Ada"], check=True)
    subprocess.run(["git", "config", "--global", "user.email", "ada@example.test"], check=True)
    return Project(tmp_path / "project")


@pytest.mark.defaults
def test_work_in_the_clone_reaches_the_checkout(project: Project) -> None:
    """With nothing set: proven in a clean checkout, by a test that fails without the change, and reviewed."""
    project.check("python3 -m pytest -q")
    project.git("commit", "-qam", "the check")
    project.script(WORK)
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "inside its sandbox (bubblewrap" in done.out
    assert "main in your checkout was advanced by" in done.err
    assert "def sub" in (project.root / "calc.py").read_text()
    assert project.git("status", "--porcelain") == ""
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert "Every story is done" in ralph_here("status", cwd=project.root).out


def test_the_agent_sees_little_of_the_machine(project: Project, tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("a key")
    (project.root / ".env").write_text("SECRET=1")
    outside = tmp_path / "outside"
    outside.mkdir()
    look = (
        f"cat {home}/.ssh/id; cat {project.root}/.env; cat .env; touch {outside}/x; echo $AWS_TOKEN; "
        "grep CapEff /proc/self/status; git push; ls /proc | grep -c '^[0-9]'"
    )
    project.script(project.says(look))
    done = project.run(env={"AWS_TOKEN": "token-of-the-caller"})
    assert done.code == 0, done.out + done.err
    said = project.said()
    assert "a key" not in said
    assert "SECRET" not in said
    assert "token-of-the-caller" not in said
    assert "CapEff:\t0000000000000000" in said
    assert list(outside.iterdir()) == []
    assert int(re.findall(r"^\d+$", said, re.M)[-1]) < 20


def test_the_path_of_the_checkout_leads_to_the_clone(project: Project) -> None:
    project.script(project.says(f"cd {project.root} && git status --short && cat calc.py && touch from-there.txt"))
    project.run()
    assert (project.root / "from-there.txt").exists()
    assert "def add" in project.said()


def test_commits_of_the_agent_arrive(project: Project) -> None:
    project.script(f"{WORK}        - run: git add -A && git commit -qm 'subtract, by the agent itself'\n")
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "subtract, by the agent itself" in project.git("log", "--format=%s")


@pytest.mark.parametrize(
    "trick",
    [
        "git config core.fsmonitor 'touch {mark}'; git config core.hooksPath .; git config core.pager 'touch {mark}'",
        "printf '#!/bin/sh\\ntouch {mark}\\n' > $(git rev-parse --git-dir)/hooks/pre-commit",
        "git config filter.x.clean 'touch {mark}; cat'; echo '*.py filter=x' > .gitattributes",
        "mv .git elsewhere; mkdir .git; rm -rf .git",
        "echo {mark} > $(git rev-parse --git-dir)/commondir",
    ],
)
def test_what_the_agent_does_to_its_repository_starts_nothing_outside(
    project: Project, tmp_path: Path, trick: str
) -> None:
    mark = tmp_path / "escaped"
    project.script(project.says(trick.format(mark=mark)))
    before = project.git("config", "--list", "--local")
    done = project.run()
    assert not mark.exists()
    assert project.git("config", "--list", "--local") == before
    assert done.code == 0, done.out + done.err


def test_a_hook_of_the_project_runs_inside(project: Project, tmp_path: Path) -> None:
    """The hook is the user's, but what it starts is a file that the agent may edit."""
    mark = tmp_path / "escaped"
    (project.root / "lint.sh").write_text("git diff --cached --name-only\nexit 0\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "lint")
    hook = project.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexec sh ./lint.sh\n")
    hook.chmod(0o755)
    staged = "git diff --cached --name-only | grep -q ."
    text = json.dumps(f"touch {mark}\n{staged}\n")
    project.script(f"{WORK}        - write: {{path: lint.sh, text: {text}}}\n")
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert not mark.exists()


def test_a_refused_commit_is_a_failed_check_inside_as_well(project: Project) -> None:
    hook = project.root / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\ngrep -q 'Reviewed-By' \"$1\" || { echo no reviewer; exit 1; }\n")
    hook.chmod(0o755)
    project.script(WORK)
    done = project.run("-n", "1")
    assert "check 'commit-msg hook' failed with exit code 1" in done.out


def test_checks_run_inside_without_the_callers_secrets(project: Project, tmp_path: Path) -> None:
    mark = tmp_path / "escaped"
    text = json.dumps(f"echo token=$MY_TOKEN; touch {mark}; exit 1")
    project.script(f"{WORK}        - write: {{path: check.sh, text: {text}}}\n")
    done = project.run("-n", "1", "--tamper", "off", env={"MY_TOKEN": "abc"})
    assert not mark.exists()
    assert "rejected" in done.out
    output = next(Path(os.environ["RALPH_STATE_HOME"]).rglob("checks/*.txt")).read_text()
    assert "token=\n" in output
    assert "abc" not in output


def test_a_check_that_cannot_run_inside_runs_outside_and_that_is_said(project: Project) -> None:
    server = subprocess.Popen(["python3", "-m", "http.server", "0", "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
    port = _port_of(server.pid)
    check = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\""
    project.check("sh check.sh", check)
    project.script(WORK)
    try:
        done = project.run()
        assert done.code == 0, done.out + done.err
        assert "checks run outside the sandbox" in done.out
        asked_for = project.run("--sandbox")
        assert "outside the sandbox" not in asked_for.out
    finally:
        server.kill()
        server.wait()


def test_a_service_of_the_machine_can_be_allowed(project: Project) -> None:
    server = subprocess.Popen(["python3", "-m", "http.server", "0", "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
    port = _port_of(server.pid)
    fetch = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port})); print('connected')\""
    project.script(project.says(fetch))
    try:
        done = project.run("--allow-hosts", f"127.0.0.1:{port}")
        assert done.code == 0, done.out + done.err
        assert "connected" in project.said()
    finally:
        server.kill()
        server.wait()


def test_paths_of_the_settings_that_lead_out_of_the_workspace(project: Project) -> None:
    project.script(WORK)
    done = ralph("run", "--trust", "--agent", "scripted", "--agent-script", "../script.yaml", cwd=project.root)
    assert done.code == 0, done.out + done.err


def test_a_refused_host_is_named(project: Project) -> None:
    fetch = "python3 -c \"import urllib.request as u; u.urlopen('https://example.org', timeout=5)\""
    project.script(project.says(fetch))
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "the sandbox refused example.org:443" in done.out
    assert "403" in project.said()


def test_a_person_works_in_the_checkout_meanwhile(project: Project) -> None:
    """Commits, branches, tags, a stash and changed files of theirs stay; the work waits on its branch."""
    project.script(f"        - run: sleep 3\n{WORK}")
    result: list[Completed] = []
    thread = threading.Thread(target=lambda: result.append(project.run()))
    thread.start()
    time.sleep(2.5)
    (project.root / "mine.txt").write_text("mine")
    project.git("add", "mine.txt")
    project.git("commit", "-qm", "mine")
    project.git("branch", "idea")
    project.git("tag", "v1")
    (project.root / "calc.py").write_text("# changed by hand\n")
    project.git("stash", "-q")
    (project.root / "notes.txt").write_text("not committed")
    thread.join()
    (done,) = result
    assert done.code == 0, done.out + done.err
    assert project.git("log", "-1", "--format=%s") == "mine"
    assert (project.root / "notes.txt").read_text() == "not committed"
    assert "main has moved on" in done.err
    assert "`git merge ralph/work/work`" in done.err
    assert project.git("stash", "list")
    assert {"idea", "main", "ralph/work/work"} == set(project.git("branch", "--format=%(refname:short)").split())
    assert "Every story is done" in ralph_here("status", cwd=project.root).out, "the plan is read where it is current"
    project.git("merge", "-q", "-m", "merge", "ralph/work/work")
    again = project.run()
    assert again.code == 0, again.out + again.err
    assert "def sub" in (project.root / "calc.py").read_text()


def test_uncommitted_work_stays_out_of_it(project: Project) -> None:
    (project.root / "draft.txt").write_text("a draft")
    (project.root / "test_calc.py").write_text("broken on purpose(")
    project.script(WORK)
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "your uncommitted changes (" in done.err
    assert (project.root / "draft.txt").read_text() == "a draft"
    assert (project.root / "test_calc.py").read_text() == "broken on purpose("
    assert "it has changes in the same files" in done.err


def test_with_workspace_clone_the_checkout_is_never_touched(project: Project) -> None:
    project.script(WORK)
    before = project.git("rev-parse", "HEAD")
    done = project.run("--workspace", "clone")
    assert done.code == 0, done.out + done.err
    assert project.git("rev-parse", "HEAD") == before
    assert "`git merge ralph/work/work` brings it in" in done.err
    project.git("merge", "-q", "--ff-only", "ralph/work/work")
    assert "def sub" in (project.root / "calc.py").read_text()


def test_a_plan_that_git_ignores_comes_back(project: Project) -> None:
    with (project.root / ".gitignore").open("a") as file:
        file.write(".ralph/\n")
    project.git("rm", "-rq", "--cached", ".ralph")
    project.git("commit", "-qam", "ignore the plan")
    project.script(WORK)
    done = project.run()
    assert done.code == 0, done.out + done.err
    tasks = json.loads((project.root / ".ralph/work/tasks.json").read_text())
    assert "passes" in json.dumps(tasks)
    assert "Every story is done" in ralph_here("status", cwd=project.root).out


def test_in_place_git_and_the_settings_are_read_only(project: Project) -> None:
    trick = "echo x >> .git/config; touch .git/hooks/pre-commit; echo x >> .ralph/config.yaml; mv .git g; git status -s"
    project.script(project.says(trick))
    before = (project.root / ".git/config").read_text()
    done = project.run("--workspace", "in-place")
    assert done.code == 0, done.out + done.err
    assert (project.root / ".git/config").read_text() == before
    assert not (project.root / ".git/hooks/pre-commit").exists()
    assert project.said().count("Read-only file system") >= 2


def test_a_killed_run_is_continued_in_its_clone(project: Project) -> None:
    sleep = f"sleep {9000 + os.getpid() % 1000}.5"
    project.script(f"{WORK}        - run: {sleep}\n")
    script = project.root.parent / "script.yaml"
    argv = [sys.executable, "-m", "ralph", "run", "--trust", "--agent", "scripted", "--agent-script", str(script)]
    process = subprocess.Popen(argv, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert _wait_until(lambda: _is_running(sleep)), "the agent has begun"
    process.kill()
    process.communicate()
    assert _wait_until(lambda: not _is_running(sleep)), "nothing inside outlives the loop"
    assert project.git("status", "--porcelain") == ""
    project.script(WORK)
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "def sub" in (project.root / "calc.py").read_text()


def test_no_sandbox_is_as_before(project: Project) -> None:
    project.script(WORK)
    done = project.run("--no-sandbox")
    assert done.code == 0, done.out + done.err
    assert [word for word in ("its sandbox", "in a sandbox", "bubblewrap") if word in done.out] == []
    assert project.git("branch", "--format=%(refname:short)") == "main"


def test_a_missing_sandbox_is_said_once_or_stops_the_run(project: Project, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "sh", "grep", "python3", "cp"):
        (programs / name).symlink_to(str(shutil.which(name)))
    project.script(WORK)
    required = project.run("--sandbox", env={"PATH": str(programs)})
    assert required.code == 78
    assert "no sandbox: bubblewrap is not installed" in required.err
    done = project.run(env={"PATH": str(programs)})
    assert done.code == 0, done.out + done.err
    assert done.err.count("no sandbox: bubblewrap is not installed") == 1


def test_an_agent_with_unknown_hosts_runs_without_one(project: Project) -> None:
    done = ralph("run", "--trust", "--once", "--agent", "command", "--agent-command", "true", cwd=project.root)
    assert "which hosts the agent `command` needs is not known" in done.err


def test_the_set_up_runs_once_inside(project: Project) -> None:
    (project.root / "sandbox").mkdir()
    (project.root / "sandbox/setup.sh").write_text("echo set up >> ~/made; touch /usr/made 2>&1 || true\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "set-up")
    project.script(project.says("cat ~/made"))
    assert project.run().code == 0
    assert project.said().count("set up") == 1
    ralph_here("task", "add", "Subtract again", cwd=project.root)
    project.run("-n", "1")
    assert project.said().count("set up") == 1


@pytest.mark.defaults
def test_checks_find_what_the_set_up_installed(project: Project) -> None:
    (project.root / "sandbox").mkdir()
    tool = "mkdir -p ~/tools && printf '#!/bin/sh\\nexit 0\\n' > ~/tools/lint && chmod +x ~/tools/lint\n"
    (project.root / "sandbox/setup.sh").write_text(tool)
    project.check("python3 -m pytest -q", f"{os.environ['HOME']}/tools/lint .")
    project.git("add", "-A")
    project.git("commit", "-qm", "set-up")
    project.script(WORK)
    done = project.run("--sandbox")
    assert done.code == 0, done.out + done.err
    assert "work is proven there" in done.out


def test_in_a_git_worktree_commits_arrive_too(project: Project) -> None:
    project.script(f"{WORK}        - run: git add -A && git commit -qm 'subtract, by the agent itself'\n")
    done = project.run("--worktree")
    assert done.code == 0, done.out + done.err
    assert "subtract, by the agent itself" in project.git("log", "--format=%s", "--branches")


@pytest.mark.parametrize(
    ("limit", "command", "named"),
    [
        ("processes: 60", "for i in $(seq 200); do sleep 30 & done; wait", "sandbox.limits.processes"),
        ("disk_mb: 50", "for i in 1 2 3 4; do head -c 30000000 /dev/urandom > f$i; sleep 1; done", "limits.disk_mb"),
        ("cpu_seconds: 2", "python3 -c 'while True: pass' & python3 -c 'while True: pass'", "limits.cpu_seconds"),
        ("memory_mb: 200", f"{EAT} & {EAT}; wait", "limits.memory_mb"),
    ],
)
def test_a_limit_that_is_hit_is_named(project: Project, limit: str, command: str, named: str) -> None:
    config = project.root / ".ralph/config.yaml"
    config.write_text(config.read_text() + f"sandbox: {{limits: {{{limit}}}}}\n")
    project.git("commit", "-qam", "limit")
    project.script(f"        - run: {json.dumps(command)}\n")
    done = project.run("-n", "1")
    assert named in done.out, done.out + done.err


def _is_running(command: str) -> bool:
    return subprocess.run(["pgrep", "-x", "-f", command], capture_output=True, check=False).returncode == 0


def _wait_until(is_so: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.1)
    return False


def _port_of(pid: int) -> int:
    """The port on which a process of ours listens."""
    for _ in range(100):
        found = subprocess.run(["ss", "-ltnp"], capture_output=True, text=True, check=False).stdout
        for text in found.splitlines():
            if f"pid={pid}," in text:
                return int(text.split()[3].rpartition(":")[2])
        time.sleep(0.1)
    raise AssertionError("it does not listen")


def test_uncommitted_edits_of_ralphs_own_files_stay(project: Project) -> None:
    for name in ("config.yaml", "work/prd.md", "work/prompt.md"):
        with (project.root / ".ralph" / name).open("a") as file:
            file.write("# a line of mine\n")
    project.script(WORK)
    done = project.run()
    assert done.code == 0, done.out + done.err
    for name in ("config.yaml", "work/prd.md", "work/prompt.md"):
        assert "# a line of mine" in (project.root / ".ralph" / name).read_text(), name


def test_after_a_merge_the_plan_is_that_of_the_checkout(project: Project) -> None:
    project.script(WORK)
    assert project.run("--workspace", "clone").code == 0
    project.git("merge", "-q", "ralph/work/work")
    assert ralph_here("task", "add", "Another", "--criterion", "it is there", cwd=project.root).code == 0
    assert "Another" in (project.root / ".ralph/work/tasks.json").read_text()
    again = project.run()
    assert "1 of 2 stories done" in again.out
    assert "Another" in (project.root / ".ralph/work/tasks.json").read_text()


def test_settings_that_are_edited_during_a_run_stay(project: Project) -> None:
    project.script(f"        - run: sleep 3\n{WORK}")
    result: list[Completed] = []
    thread = threading.Thread(target=lambda: result.append(project.run()))
    thread.start()
    time.sleep(2.5)
    with (project.root / ".ralph/config.yaml").open("a") as file:
        file.write("# edited meanwhile\n")
    thread.join()
    assert "# edited meanwhile" in (project.root / ".ralph/config.yaml").read_text()
    assert "agents do not change the rules" not in result[0].out


def test_a_limit_of_a_check_is_named(project: Project) -> None:
    config = project.root / ".ralph/config.yaml"
    config.write_text(config.read_text() + "sandbox: {limits: {cpu_seconds: 2}}\n")
    project.git("commit", "-qam", "limit")
    project.script(f"{WORK}        - write: {{path: check.sh, text: 'while true; do :; done'}}\n")
    done = project.run("-n", "1", "--tamper", "off")
    assert "rejected" in done.out
    shown = ralph_here("log", "--verbose", cwd=project.root)
    output = "".join(path.read_text() for path in Path(os.environ["HOME"]).rglob("checks/*.txt"))
    assert "sandbox.limits.cpu_seconds" in output + shown.out


@pytest.mark.defaults
def test_an_editable_install_elsewhere_is_proven_inside(project: Project, tmp_path: Path) -> None:
    """A virtual environment beside the project names its source folder by path: a clean checkout has another one."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "kit.pth").write_text(f"{project.root}/src\n")
    for name, text in {
        "src/kit.py": "def one():\n    return 1\n",
        "tests/test_kit.py": "import unittest\n\nimport kit\n\n\nclass Kit(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(kit.one(), 1)\n",
    }.items():
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).write_text(text)
    project.check(f"{venv}/bin/python -m unittest discover -s tests -v")
    project.git("add", "-A")
    project.git("commit", "-qm", "a kit")
    test = "\\n    def test_two(self):\\n        self.assertEqual(kit.two(), 2)\\n"
    project.script(
        '        - append: {path: src/kit.py, text: "\\n\\ndef two():\\n    return 2\\n"}\n'
        f'        - append: {{path: tests/test_kit.py, text: "{test}"}}\n'
    )
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert "outside the sandbox" not in done.out
    assert "work is proven there" in done.out
