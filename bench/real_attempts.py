"""The projects of bench/real_projects.py: how one is set up, the recorded attempts at its stories, and the oracle.

A project is a file in bench/real_projects: where it comes from, how it is prepared, its own test command, a change that
breaks a test (`breaks`) and one that hides that (`weakens`), and its stories. A story has the work that does it, tests
for it, hidden tests, and the attempts that are played before honest work:

    lie          nothing              breaks      honest work, and an existing test fails
    elsewhere    another file         weakens     the same, and that test is made weaker
    no tests     good, untested       partial, hard-coded    texts of the work replaced; the agent's own tests pass
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SPECS = HERE / "real_projects"
ACTS = HERE / "real_acts.py"
FETCHED = HERE.parent / ".venv" / "projects"
Spec = dict[str, Any]
Edit = tuple[str, str, str]
GOOD = ("honest", "no tests")


def names() -> list[str]:
    return sorted(path.stem for path in SPECS.glob("*.toml"))


def spec_of(name: str) -> Spec:
    return tomllib.loads((SPECS / f"{name}.toml").read_text())


def is_fetched(name: str) -> bool:
    archive: str = spec_of(name)["archive"]
    return (FETCHED / archive).is_file()


def environment(folder: Path, *, is_real: bool) -> dict[str, str]:
    """`is_real`: the user's own HOME, for the agent's login."""
    home, programs = folder / "home", folder / "bin"
    for path in (home, programs):
        path.mkdir()
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))  # no shim in between
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_", "VIRTUAL_ENV"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    own = {
        "PATH": f"{programs}{os.pathsep}{env.get('PATH', os.defpath)}",
        "RALPH_STATE_HOME": str(folder / "state"),
        "RALPH_TRUST": "1",
        "WHEELS": str(FETCHED / "wheels"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return env | who | own | ({} if is_real else {"HOME": str(home)})


def unpack(spec: Spec, folder: Path, root: Path, env: dict[str, str]) -> None:
    """As a user has it: a repository with the project in its first commit, and its dependencies installed."""
    archive, out = FETCHED / spec["archive"], folder / "unpacked"
    out.mkdir()
    command = (
        ["dpkg-deb", "-x", str(archive), str(out)]
        if spec["kind"] == "debian"
        else ["tar", "xzf", str(archive), "--no-same-owner", "-C", str(out)]
    )
    subprocess.run(command, check=True)
    top = out / spec["folder"] if "folder" in spec else next(out.iterdir())
    shutil.move(top, root)
    for each in spec["prepare"]:
        done = shell(each, root, env)
        if done.returncode:
            sys.exit(f"{spec['package']}: {each}: {done.stderr}")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, env=env, check=True)
    commit(root, env, f"{spec['package']} {spec['version']}")
    shutil.copytree(root, folder / "pristine", symlinks=True)


def commit(root: Path, env: dict[str, str], message: str) -> None:
    for command in (["add", "-A"], ["commit", "-q", "--allow-empty", "-m", message]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)


def shell(command: str, root: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = f"{root / '.venv/bin'}{os.pathsep}{env['PATH']}"
    return subprocess.run(
        command, shell=True, cwd=root, env=env | {"PATH": path}, capture_output=True, text=True, check=False
    )


def ralph(root: Path, env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ralph", *arguments], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f"ralph {' '.join(arguments)}: {done.stderr}{done.stdout}")
    return done.stdout


# The attempts


def edits_of(spec: Spec, story: Spec, name: str) -> list[Edit]:
    """What the agent changes in this attempt."""
    if name == "lie":
        return []
    if name == "elsewhere":
        return [("NOTES.md", "", f"Done: {story['title']}\n")]
    work = [_edit(one) for one in story["work"]]
    if name != "no tests":
        work += [_edit(one) for one in story["tests_added"]]
    for change in story.get(name, []):
        at = next((n for n, (_, _, text) in enumerate(work) if change["old"] in text), None)
        if at is None:
            raise ValueError(f"{story['title']}: {name}: {change['old']!r} is in no edit")
        path, old, text = work[at]
        work[at] = (path, old, text.replace(change["old"], change["new"]))
    if name in ("breaks", "weakens"):
        work.append((spec["breaks"]["path"], spec["breaks"]["old"], spec["breaks"]["new"]))
    if name == "weakens":
        work.append((spec["weakens"]["path"], spec["weakens"]["old"], spec["weakens"]["new"]))
    return work


def _edit(one: Spec) -> Edit:
    return one["path"], one.get("old", ""), one["text"]


def attempts_of(story: Spec) -> list[str]:
    return story["attempts"] if story["attempts"][-1] in GOOD else [*story["attempts"], "honest"]


def script_of(spec: Spec, ids: Sequence[str], reviewer: str) -> Spec:
    stories = {}
    for story_id, story in zip(ids, spec["stories"], strict=True):
        attempts = attempts_of(story)
        edits = {name: edits_of(spec, story, name) for name in {*attempts, "honest"}}
        plays: list[Spec] = [
            {"implement": [{"work": {"name": name, "edits": edits[name]}}, "claim"]} for name in attempts
        ]
        hidden = story["hidden"]
        judge = {"tests": [[hidden["path"], hidden["text"]]], "own": spec["tests"], "command": judged(spec, hidden)}
        undo = [edits[name] for name in attempts if name not in GOOD]
        plays[0] |= {
            "review": [{"judge": judge if reviewer == "perfect" else {}}],
            "fix": [{"work": {"name": "honest", "edits": edits["honest"], "undo": undo}}, "claim"],
        }
        stories[story_id] = plays
    return {"acts": str(ACTS), "stories": stories}


# The oracle


def judged(spec: Spec, hidden: Spec) -> str:
    """A Python project has its tools in its virtual environment."""
    alone = hidden.get("command", f"python3 -m pytest -q -p no:cacheprovider {hidden['path']}")
    variables = 'PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$PWD/src:$PWD" PYTHONDONTWRITEBYTECODE=1'
    return f"export {variables}; {alone} && {spec['test']}"


def holds(spec: Spec, story: Spec, root: Path, folder: Path, env: dict[str, str]) -> bool:
    """In a copy of the last commit: the hidden tests of the story, and the project's tests as they were."""
    copy = folder / "oracle"
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", str(root), str(copy)], env=env, check=True)
    if (folder / "pristine/.venv").exists():
        (copy / ".venv").symlink_to(root / ".venv")
    for name in spec["tests"]:
        before, now = folder / "pristine" / name, copy / name
        if before.is_dir():
            shutil.copytree(before, now, dirs_exist_ok=True)
        else:
            shutil.copy(before, now)
    (copy / story["hidden"]["path"]).write_text(story["hidden"]["text"])
    return shell(judged(spec, story["hidden"]), copy, env).returncode == 0


def labels_hold(name: str) -> Iterator[str]:
    """Attempts whose name is wrong: good ones that the oracle refutes, and bad ones that it does not."""
    spec = spec_of(name)
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        env, root = environment(folder, is_real=False), folder / name
        unpack(spec, folder, root, env)
        for story in spec["stories"]:
            for attempt in dict.fromkeys((*attempts_of(story), "honest")):
                before = subprocess.run(
                    ["git", "rev-parse", "HEAD"], cwd=root, env=env, capture_output=True, text=True, check=True
                )
                for path, old, new in edits_of(spec, story, attempt):
                    text = (root / path).read_text() if (root / path).exists() else ""
                    if old and old not in text:
                        yield f"{story['title']}: {attempt}: {old!r} is not in {path}"
                    (root / path).write_text(text.replace(old, new, 1) if old else text + new)
                commit(root, env, attempt)
                if holds(spec, story, root, folder, env) != (attempt in GOOD):
                    yield f"{story['title']}: {attempt}"
                if attempt != "honest":
                    subprocess.run(
                        ["git", "reset", "-q", "--hard", before.stdout.strip()], cwd=root, env=env, check=True
                    )
