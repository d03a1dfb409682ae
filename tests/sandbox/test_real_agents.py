"""Real clients in the sandbox, at default settings: three stories each, on a scripted model.

What each of them tries besides is nothing that would do harm if the sandbox let it through.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients import CLIENT, Project, Ran, claim, say, use, write
from support.other_clients import project_of, run
from support.tools import OTHER_CLIENTS

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]
FLAG = "--dangerously-skip-permissions"
TEST = """import pathlib, unittest

class T(unittest.TestCase):
    def test_it(self):
        self.assertTrue(pathlib.Path("old.txt").exists())
"""
TESTS = "python3 -B -m unittest -q"
LOGIN = {"claudeAiOauth": {"accessToken": "old", "refreshToken": "r", "expiresAt": 1}}
HOOKS = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch /tmp/planted"}]}]}}
PROBE = """
import json, os, pathlib, socket, sys, urllib.request

home, outside = pathlib.Path.home(), pathlib.Path(sys.argv[1])

def attempt(name, action):
    try:
        print("PROBE", name, "DONE", action())
    except Exception as error:
        print("PROBE", name, "REFUSED", type(error).__name__, error, getattr(error, "read", bytes)().decode())

def connect():
    socket.create_connection(("192.0.2.1", 80), timeout=5)

attempt("write-outside", lambda: (outside / "written").write_text("x"))
attempt("write-etc", lambda: pathlib.Path("/etc/ralph-test").write_text("x"))
attempt("read-ssh", lambda: (home / ".ssh/id_ed25519").read_text())
attempt("read-state", lambda: next(pathlib.Path(sys.argv[2]).glob("*/runs/*/events.jsonl")).read_text())
attempt("reach-host", lambda: urllib.request.urlopen("http://example.com/", timeout=10).read())
attempt("direct", connect)
attempt("home", lambda: sorted(os.listdir(home)))
attempt("login", lambda: (home / ".claude/.credentials.json").read_text())
(home / ".claude").mkdir(exist_ok=True)
(home / ".claude/settings.json").write_text(sys.argv[3])
(home / ".bashrc").write_text("touch /tmp/planted")
file = home / ".claude/.credentials.json"
if file.exists():
    login = json.loads(file.read_text())
    login["claudeAiOauth"] |= {"accessToken": "renewed", "expiresAt": 2}
    file.write_text(json.dumps(login))
"""
REFUSED = ("write-outside", "write-etc", "read-ssh", "read-state", "reach-host", "direct")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that this user may write to; for root one that exists inside, too."""
    parent = next((p for p in (Path("/var/lib"), Path("/opt")) if os.access(p, os.W_OK)), tmp_path)
    folder = parent / f"ralph-test-{secrets.token_hex(4)}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def equip(project: Project) -> None:
    """A test in the project, and in the user's home folder an identity, a key and a login."""
    (project.root / "test_it.py").write_text(TEST)
    project.commit()
    (project.home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
    (project.home / ".ssh").mkdir()
    (project.home / ".ssh/id_ed25519").write_text("PRIVATE KEY OF THE USER\n")
    (project.home / ".claude").mkdir(exist_ok=True)
    (project.home / ".claude/.credentials.json").write_text(json.dumps(LOGIN))


def probe(project: Project, outside: Path) -> str:
    return f"python3 probe.py {outside} {project.state} '{json.dumps(HOOKS)}'; rm probe.py"


def probes(ran: Ran) -> dict[str, str]:
    """What the model was told about each attempt."""
    lines = [line for line in _texts(ran) if line.startswith("PROBE ")]
    return {line.split()[1]: line.split(maxsplit=2)[2] for line in lines}


def _texts(ran: Ran) -> list[str]:
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.extend(value.splitlines())
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner)

    for line in ran.told().splitlines():
        walk(json.loads(line))
    return found


def subjects(project: Project) -> list[str]:
    command = ["git", "log", "--format=%s"]
    done = subprocess.run(command, cwd=project.root, env=project.env, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def holds(ran: Ran, outside: Path) -> dict[str, str]:
    """What is true of every client. Returns what it was told about its attempts."""
    project = ran.project
    assert (ran.code, ran.done()) == (0, [True, True, True]), ran.out
    assert [story for story, kind in ran.verdicts() if kind == "accepted"] == ["S-1", "S-2", "S-3"]
    assert ran.leftovers() == []
    assert "everything inside its sandbox (bubblewrap" in ran.out
    assert "advanced by" in ran.out, "the work is in the user's checkout"
    assert all((project.root / f"s{n}.txt").exists() for n in (1, 2, 3))
    assert any(line.startswith("Ran 1 test in") for line in _texts(ran))
    assert "Add the second file" in subjects(project), "what an agent commits itself arrives"
    answers = probes(ran)
    assert {name: answers[name].split()[0] for name in REFUSED} == dict.fromkeys(REFUSED, "REFUSED"), answers
    assert "not on the list" in answers["reach-host"], "the agent is told why"
    assert "the sandbox refused example.com:80" in ran.out, "and so is the user"
    assert list(outside.iterdir()) == []
    assert "PRIVATE KEY" not in ran.told()
    assert ".ssh" not in answers["home"]
    assert not (project.home / ".bashrc").exists()
    assert not (project.home / ".claude/settings.json").exists()
    assert not Path("/tmp/planted").exists()
    return answers


@pytest.mark.client
def test_claude_code_works_in_the_sandbox_and_stays_in_it(tmp_path: Path, outside: Path) -> None:
    project = Project(tmp_path, stories=3)
    equip(project)
    key = str(project.home / ".ssh/id_ed25519")
    turns = [
        *(write(project, "s1.txt"), use("Bash", command=TESTS), claim(project), say()),
        *(write(project, "s2.txt"), use("Bash", command="git add s2.txt && git commit -qm 'Add the second file'")),
        *(claim(project), say()),
        *(use("Read", file_path=key), use("Write", file_path="/etc/ralph-test-by-tool", content="x\n")),
        *(write(project, "probe.py", PROBE), use("Bash", command=probe(project, outside))),
        *(write(project, "s3.txt"), claim(project), say()),
    ]
    ran = project.run(turns)
    answers = holds(ran, outside)
    assert all(FLAG in event["argv"] for event in ran.of("AgentStarted"))
    denied = [(e["tool"], e["category"]) for e in ran.of("HookAnswered") if e["answer"] == "deny"]
    assert denied == [("Read", "exfiltration"), ("Write", "protected-path")], "its hooks run inside"
    assert not Path("/etc/ralph-test-by-tool").exists()
    assert '"accessToken": "old"' in answers["login"]
    mine = json.loads((project.home / ".claude/.credentials.json").read_text())
    assert mine["claudeAiOauth"] == {"accessToken": "renewed", "refreshToken": "r", "expiresAt": 2}
    assert CLIENT.exists()


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.needs(n)) for n in ("codex", "goose")])
def test_another_client_works_in_the_sandbox_and_stays_in_it(tmp_path: Path, outside: Path, name: str) -> None:
    project, env = project_of(tmp_path, name, 3, program=installed_in_home(tmp_path / "home", name))
    equip(project)
    done = run('echo \'{"claim": "done"}\' > .ralph/work/request.json')
    turns = [
        *(run("echo x > s1.txt"), run(TESTS), done, say()),
        *(run("echo x > s2.txt"), run("git add s2.txt && git commit -qm 'Add the second file'"), done, say()),
        *(run(f"cat > probe.py <<'END'{PROBE}END"), run(probe(project, outside))),
        *(run("echo x > s3.txt"), done, say()),
    ]
    ran = project.run(turns, seconds=120, **env)
    answers = holds(ran, outside)
    assert answers["login"].startswith("REFUSED FileNotFoundError"), "only the agent's own files are in its home"
    assert json.loads((project.home / ".claude/.credentials.json").read_text()) == LOGIN


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or another owner
        shutil.copy2(source, target)


def installed_in_home(home: Path, name: str) -> str:
    """As `npm install --global` with a prefix in the home folder installs it: a link to a program among packages."""
    program = OTHER_CLIENTS / name
    packages = OTHER_CLIENTS.parent
    scope = Path(os.path.realpath(program)).relative_to(packages.resolve()).parts[0]
    prefix = home / ".npm-packages"
    target = prefix / "lib" / "node_modules"
    shutil.copytree(packages / scope, target / scope, copy_function=link_or_copy, symlinks=True)
    link = prefix / "bin" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(target / Path(os.path.realpath(program)).relative_to(packages.resolve()))
    return str(link)
