"""What an agent leaves in its clone, its repository and its home folder: nothing of it acts outside the sandbox.

Every test runs `ralph run` with nothing set, most of them twice: much is only read when the next run starts.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Completed, ralph, ralph_here

pytestmark = pytest.mark.needs("bwrap")

KEY = "-----the key of the user-----"
WORK = """\
        - append: {path: calc.py, text: "\\n\\ndef sub(a, b):\\n    return a - b\\n"}
        - append: {path: test_calc.py, text: "\\n\\ndef test_sub():\\n    assert calc.sub(3, 2) == 1\\n"}
"""
REVIEW = "      review: [{verdict: {what: approved, by: request}}]\n"


class Project:
    """A repository of a user whose home folder has something to lose."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home, self.mark = folder / "project", Path(os.environ["HOME"]), folder / "escaped"
        self.script_file = folder / "script.yaml"
        for name, text in {".ssh/id": KEY, ".bashrc": "# mine\n", ".config/pip/pip.conf": "[global]\n"}.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("calc.py", "def add(a, b):\n    return a + b\n")
        self.write("test_calc.py", "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n")
        self.write(".gitignore", "__pycache__/\n.pytest_cache/\nnode_modules/\n")
        self.write("check.sh", "! grep -q BROKEN *.py\n")
        assert ralph_here("init", "work", "--no-input", "--no-checks", cwd=self.root).code == 0
        assert ralph_here("config", "set", "checks", '["sh check.sh"]', cwd=self.root).code == 0
        assert ralph_here("task", "add", "Subtract", "--criterion", "sub(3, 2) is 1", cwd=self.root).code == 0
        self.commit()
        self.plan = self.root / ".ralph/work"

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        (self.root / name).chmod(mode)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "by hand")

    def run(self, command: str = "true", *words: str) -> Completed:
        """A run whose agent does this inside, and then the work."""
        command = command.format(home=self.home, root=self.root, mark=self.mark)
        steps = f"        - run: {json.dumps(f'({command}) 2>&1; true')}\n{WORK}        - claim: done\n"
        self.script_file.write_text(f"stories:\n  '*':\n    - implement:\n{steps}{REVIEW}")
        script = ("--agent", "scripted", "--agent-script", self.script_file)
        done = ralph("run", "--trust", *script, *words, cwd=self.root)
        assert "Traceback" not in done.out + done.err, done.err
        return done

    def again(self, command: str = "true", *words: str, works: bool = True) -> Completed:
        """The next run, for another story. Not `works`: it may stop before a session."""
        before = self._sessions()
        added = ralph_here("task", "add", "Subtract once more", "--criterion", "sub(5, 2) is 3", cwd=self.root)
        assert added.code == 0, added.err
        done = self.run(command, *words)
        assert not works or self._sessions() > before, done.out + done.err
        return done

    def _sessions(self) -> int:
        return len([*Path(os.environ["RALPH_STATE_HOME"]).glob("*/runs/*/raw/*-agent.log")])

    def said(self) -> str:
        """What commands of all runs printed inside."""
        logs = sorted(Path(os.environ["RALPH_STATE_HOME"]).glob("*/runs/*/raw/*-agent.log"))
        events = [json.loads(line) for log in logs for line in log.read_text().splitlines() if line.startswith("{")]
        return "\n".join(str(event["message"]["content"]) for event in events if event.get("type") == "user")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Afterwards nothing has run outside, and the files of the user are as they were."""
    monkeypatch.delenv("RALPH_SANDBOX", raising=False)
    for key, value in {"user.name": "Ada", "user.email": "ada@example.test"}.items():
        subprocess.run(["git", "config", "--global", key, value], check=True)
    made = Project(tmp_path)
    before, settings = _content(made.home), (made.root / ".git/config").read_bytes()
    yield made
    assert not made.mark.exists(), "something ran outside"
    assert _content(made.home) == before
    assert KEY not in made.said()
    assert settings in (made.root / ".git/config").read_bytes()
    assert not _has_key(made.root), "the key was copied into the checkout"


def _content(home: Path) -> dict[str, bytes]:
    names = (".ssh/id", ".bashrc", ".config/pip/pip.conf", ".gitconfig")
    return {name: (home / name).read_bytes() for name in names} | {"all": "\n".join(sorted(_names(home))).encode()}


def _names(home: Path) -> Iterator[str]:
    state = Path(os.environ["RALPH_STATE_HOME"])
    for folder, folders, files in os.walk(home):
        folders[:] = [name for name in folders if Path(folder, name) != state and name not in (".cache", "__pycache__")]
        yield from (str(Path(folder, name).relative_to(home)) for name in (*folders, *files))


def _has_key(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if not path.is_symlink() and path.is_file()]
    return any(KEY.encode() in path.read_bytes() for path in files)


# --- the home folder -------------------------------------------------------------------------------------------------


def test_special_files_in_its_home_folder_do_not_stop_the_next_run(project: Project) -> None:
    trick = "cd {home} && rm -rf .gitconfig .config .npmrc && mkfifo .gitconfig .npmrc && echo file > .config"
    assert project.run(trick).code == 0
    done = project.again("cd {home} && test -f .gitconfig && test -d .config && echo as before")
    assert done.code == 0, done.out + done.err
    assert "as before" in project.said()


# --- files of the run and of the plan --------------------------------------------------------------------------------


def test_links_in_place_of_the_files_of_a_run_are_not_written_to(project: Project) -> None:
    """Such files hold text of the agent: written to a start-up file of the shell, it would run."""
    trick = "for f in .ralph/*.log .ralph/*.log.1 .ralph/*.md .ralph/work/*.log .ralph/work/*.txt "
    trick += ".ralph/status.json; do rm -f $f; ln -s {home}/.bashrc $f; done; ls -l .ralph .ralph/work"
    assert project.run(trick).code in (0, 1, 5)
    done = project.again()
    assert done.code in (0, 1, 5), done.out + done.err


@pytest.mark.parametrize(
    "trick",
    [
        "mv .ralph/work .ralph/other; ln -s {home}/.ssh .ralph/work",
        "mv .ralph aside; ln -s {home} .ralph; mkdir -p {home}/work",
        "cp -r .ralph/work/. {home}/; rm -rf .ralph/work; ln -s {home} .ralph/work",
        "rm .ralph/work/tasks.json; ln -s {home}/.ssh/id .ralph/work/tasks.json",
        "ln -s {home}/.ssh/id .ralph/work/notes.md; ln -s {home}/.ssh .ralph/work/folder",
        "rm -f $RALPH_REQUEST_FILE; ln -s {home}/.ssh/id $RALPH_REQUEST_FILE",
        "ln -s {home}/.ssh/id .ralph/WAITING",
    ],
)
def test_a_plan_as_a_link_is_not_followed(project: Project, trick: str) -> None:
    done = project.run(trick, "-n", "2")
    assert not (project.plan / "notes.md").exists()
    assert not (project.plan / "id").exists()
    assert json.loads((project.plan / "tasks.json").read_text())["userStories"], done.out + done.err
    assert not project.plan.is_symlink()
    again = project.again("cat .ralph/work/* .ralph/work/*/*", "-n", "1", works="WAITING" not in trick)
    assert KEY not in done.out + again.out


def test_no_repository_comes_back_with_the_plan(project: Project) -> None:
    """git would use it, and start what its settings name, for a user who looks into the folder of the plan."""
    trick = (
        "cd .ralph/work && for name in .git .GIT sub/.git; do mkdir -p sub && echo 'gitdir: '$PWD/fake > $name; done; "
        "git init -q --bare fake; git --git-dir=fake config core.fsmonitor 'touch {mark}'; "
        "git --git-dir=fake config core.bare false; ls -a"
    )
    assert project.run(trick).code in (0, 1)
    assert not [path for path in project.plan.rglob("*") if path.name.lower() == ".git"]
    subprocess.run(["git", "status"], cwd=project.plan, capture_output=True, check=False)


@pytest.mark.parametrize("kind", ["mkfifo {}", "truncate -s 300M {}", "mkdir {}", "ln -s {} {}"])
def test_a_file_of_the_plan_that_cannot_be_read_does_not_end_the_run(project: Project, kind: str) -> None:
    (project.plan / "notes.md").write_text("mine\n")
    with (project.root / ".gitignore").open("a") as file:
        file.write(".ralph/work/notes.md\n")
    project.commit()
    done = project.run(f"rm .ralph/work/notes.md; {kind.replace('{}', '.ralph/work/notes.md')}")
    assert done.code == 0, done.out + done.err
    assert (project.plan / "notes.md").read_text() == "mine\n"
    assert project.again().code == 0


# --- the tree --------------------------------------------------------------------------------------------------------


def test_files_that_other_programs_start_are_only_files(project: Project) -> None:
    """Nothing in a run installs, builds or collects them outside; checks do so inside."""
    python = "import pathlib\ntry:\n    pathlib.Path('{mark}').touch()\nexcept OSError:\n    pass\n".replace(
        "\n", "\\n"
    )
    trick = (
        f'for f in setup.py conftest.py sitecustomize.py noxfile.py; do printf "{python}" > $f; done; '
        "mkdir -p .husky .claude .vscode sandbox .githooks; for f in .husky/pre-commit .husky/post-merge "
        ".husky/post-checkout .githooks/pre-push sandbox/setup.sh .envrc; do "
        "printf '#!/bin/sh\\ntouch {mark}\\nexit 0\\n' > $f; chmod +x $f; done; "
        'echo \'{{"scripts": {{"preinstall": "touch {mark}", "test": "touch {mark}"}}}}\' > package.json; '
        'echo \'{{"hooks": {{"SessionStart": [{{"hooks": [{{"type": "command", "command": "touch {mark}"}}]}}]}}}}\''
        " > .claude/settings.json; printf 'all:\\n\\ttouch {mark}\\n' > Makefile; "
        "printf 'repos: [{{repo: local, hooks: [{{id: x, name: x, entry: touch {mark}, language: system}}]}}]' "
        "> .pre-commit-config.yaml; ls -a"
    )
    done = project.run(trick)
    assert done.code in (0, 1), done.out + done.err
    done = project.again()
    assert done.code in (0, 1), done.out + done.err


@pytest.mark.parametrize("kind", ["clean", "smudge", "process"])
def test_a_filter_of_the_user_whose_script_is_in_the_tree_is_refused(project: Project, kind: str) -> None:
    """The user trusts the script that is there; the agent could write another one, and git would run it outside."""
    project.write("tools/filter.sh", "exec cat\n")
    project.commit()
    project.git("config", f"filter.own.{kind}", "sh ./tools/filter.sh")
    done = project.run("printf 'touch {mark}\\nexec cat\\n' > tools/filter.sh; echo '* filter=own' > .gitattributes")
    assert done.code == 78, done.out + done.err
    assert f"filter.own.{kind} runs ./tools/filter.sh" in done.err
    project.git("config", f"filter.own.{kind}", "cat")
    if kind != "process":
        assert project.run().code == 0


def test_hooks_and_drivers_of_the_user_whose_scripts_are_in_the_tree(project: Project) -> None:
    for name in ("post-checkout", "post-merge", "post-commit", "reference-transaction", "post-index-change"):
        project.write(f".husky/{name}", "#!/bin/sh\nexit 0\n", 0o755)
    project.write(".gitattributes", "*.py diff=own merge=own\n")
    project.write("tool.sh", "exit 0\n")
    project.commit()
    settings = {"core.hooksPath": ".husky", "diff.own.textconv": "sh ./tool.sh", "diff.own.command": "sh ./tool.sh"}
    settings |= {"merge.own.driver": "sh ./tool.sh", "core.fsmonitor": "./tool.sh", "diff.external": "./tool.sh"}
    settings |= {"core.sshCommand": "./tool.sh", "gpg.program": "./tool.sh", "core.alternateRefsCommand": "./tool.sh"}
    for key, value in settings.items():
        project.git("config", key, value)
    trick = "for f in .husky/* tool.sh; do printf '#!/bin/sh\\ntouch {mark}\\n' > $f; chmod +x $f; done"
    project.run(trick)
    project.again("echo '# more' >> calc.py")


@pytest.mark.parametrize(
    "trick",
    [
        (
            "mkdir sub && cd sub && git init -q && git config core.fsmonitor 'touch {mark}' && touch x && git add x && "
            "git -c user.name=a -c user.email=a@b commit -qm x"
        ),
        (
            "mkdir fake sub && git init -q --bare fake && git --git-dir=fake config core.fsmonitor 'touch {mark}' && "
            "echo gitdir: $PWD/fake > sub/.git && touch sub/x"
        ),
        (
            "printf '[submodule \"x\"]\\n\\tpath = sub\\n\\turl = ext::touch {mark}\\n\\tupdate = !touch {mark}\\n' "
            "> .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub"
        ),
        "mkfifo pipe .gitattributes .mailmap; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
        (
            "touch \"$(printf 'a\\nb')\" ' ' -- '-rf' '$(touch {mark})' '`touch {mark}`'; mkdir -p .GIT; "
            "touch .GIT/config CALC.PY Calc.py"
        ),
        (
            "rm -rf .ralph/config.yaml sandbox; mkdir -p sandbox; printf 'touch {mark}\\n' > sandbox/setup.sh; "
            "printf 'sandbox: none\\nnotify: {{command: touch {mark}}}\\nhooks: {{}}\\n' > .ralph/config.local.yaml; "
            "git add -Af; git commit -qm settings"
        ),
        "ln -s {home} linked; ln -s {home}/.ssh/id key.txt; git add -A; git commit -qm links; rm -rf linked/*",
        (
            "mkdir -p node_modules/x && ln -s {home}/.ssh/id node_modules/x/key && ln -s {home}/.ssh node_modules/y; "
            "printf 'cat node_modules/x/key node_modules/y/id key.txt\\n! grep -q BROKEN *.py\\n' > check.sh"
        ),
    ],
    ids=["repository", "git-file", "submodule", "pipes", "names", "settings", "links", "dependency-links"],
)
def test_what_is_left_in_the_tree_is_only_data(project: Project, trick: str) -> None:
    done = project.run(trick, "-n", "2")
    assert done.code in (0, 1, 5), done.out + done.err
    again = project.again("true", "-n", "1")
    assert again.code in (0, 1, 5), again.out + again.err
    outputs = [path.read_text() for path in Path(os.environ["RALPH_STATE_HOME"]).rglob("checks/*.txt")]
    assert not any(KEY in text for text in outputs), "a check has read the key"
    assert KEY not in done.out + again.out


# --- its repository --------------------------------------------------------------------------------------------------

SCRATCH = "g=$(git rev-parse --absolute-git-dir) && echo y >> calc.py && git commit -qam more && "


@pytest.mark.parametrize(
    "trick",
    [
        "mv $g $g.x && ln -s {root}/.git $g",
        "mv $g $g.x && ln -s $g.x $g",
        "git clone -q --bare . $g/bundle; git --git-dir=$g/bundle config uploadpack.packObjectsHook 'touch {mark}'",
        "ln -s {home}/.bashrc $g/bundle",
        "mkfifo $g/bundle",
        "rm -f $g/packed-refs $g/HEAD; mkfifo $g/packed-refs $g/HEAD",
        "truncate -s 300M $g/packed-refs",
        "rm -rf $g/refs && ln -s {root}/.git/refs $g/refs",
        "echo {root}/.git/objects > $g/objects/info/alternates",
        "for i in $(seq 300); do git update-ref refs/heads/b$i HEAD; git update-ref refs/replace/b$i HEAD; done",
        "git replace $(git rev-parse HEAD~1) HEAD; git update-ref refs/heads/main HEAD; git tag -f v1",
        (
            "git config extensions.partialClone o; git config remote.o.url 'ext::touch {mark}'; "
            "git config remote.o.promisor true; git config protocol.ext.allow always; "
            "rm -rf $(find $g/objects -type f -name '????????*' | head -2)"
        ),
    ],
)
def test_what_it_does_to_its_own_repository_stays_there(project: Project, trick: str) -> None:
    project.git("branch", "kept")
    before = project.git("for-each-ref", "refs/heads", "refs/tags")
    done = project.run(f"{SCRATCH}{trick}", "-n", "1")
    assert done.code in (0, 1, 5), done.out + done.err
    kept = [line for line in before.splitlines() if not line.endswith("/main")]
    assert [
        line for line in project.git("for-each-ref", "refs/heads", "refs/tags").splitlines() if "main" not in line
    ] == kept
    assert project.git("for-each-ref", "refs/replace") == ""
    assert stat.S_ISDIR((project.root / ".git").lstat().st_mode)
    assert project.git("fsck", "--connectivity-only", "--no-dangling") == ""


# --- checks ----------------------------------------------------------------------------------------------------------


def test_a_check_that_fails_inside_on_work_of_an_agent_is_not_tried_outside(project: Project) -> None:
    """On the user's own code it is: some checks need the machine. What an agent has written could fail on purpose."""
    done = project.run("echo made > made.txt")
    assert done.code == 0, done.out + done.err
    assert (project.root / "made.txt").exists()
    project.write("check.sh", f"test -e {project.home}/.ssh/id || exit 1\ntouch {project.mark}\n")
    project.commit()
    again = project.again(works=False)
    assert "sh check.sh fails before any work" in again.out
    assert "outside the sandbox" not in again.out + again.err
