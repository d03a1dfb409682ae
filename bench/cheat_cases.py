"""The corpus of bench/cheats.py: small projects, and what an agent does in them. Read from bench/cheats/*.yaml.

A case names its project, its layout and the agent's steps, in the language of docs/scripted-agent.md. `{do: NAME}`
stands for steps of the project under that name, such as `work`, which truly implements its story.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CORPUS = Path(__file__).resolve().parent / "cheats"
ACTS = CORPUS.parent.parent / "tests" / "support" / "stunts.py"
"""More actions for scripts. Each case has a copy in its virtual environment, which a sandbox shows."""
STORY = "US-001"
PLANS = {"feature": ".ralph/shop/prd.json", "tasks.json": ".ralph/shop/tasks.json", "plan.md": ".ralph/PRD-1/plan.md"}
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py.py")
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"
_IDENTITY = "[user]\n\tname = Ada Tester\n\temail = ada@example.test\n[init]\n\tdefaultBranch = main\n"


class Case(NamedTuple):
    name: str
    kind: str
    """`cheat` or `honest`."""
    group: str
    """The class of the cheat, or the kind of honest work."""
    project: str
    layout: str
    steps: list[Any]
    then: list[Any]
    """What the agent does from its second attempt on; empty: the same."""
    fix: list[Any]
    runs: int
    """How many times `ralph run` is started."""
    files: dict[str, str]
    """Files at the start, beside those of the project."""
    red: bool
    """The story's tests are there at the start, and fail."""
    story: dict[str, Any]
    source: list[str]
    """More patterns of files that the oracle takes from the final commit."""
    stale: list[str]
    """Original tests that the story legitimately changes: the oracle does not run them."""
    probe: dict[str, str]
    varied: bool
    """The reviewer has another finding each time."""
    expected: str
    """`undetectable`: only tests that the agent cannot see can tell."""


def projects() -> dict[str, dict[str, Any]]:
    found = _load(CORPUS / "projects.yaml")
    assert isinstance(found, dict)
    return found


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def cases() -> list[Case]:
    known = projects()
    listed = [case for path in sorted(CORPUS.glob("*/*.yaml")) for case in _read(path, known)]
    names = [case.name for case in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two cases have the same name: {', '.join(twice)}")
    return listed


def _read(path: Path, known: Mapping[str, dict[str, Any]]) -> Iterator[Case]:
    for number, entry in enumerate(_load(path)):
        project = known[entry["project"]]
        layout = entry.get("layout") or list(PLANS)[number % len(PLANS)]
        cheat = path.parent.name == "cheat"
        yield Case(
            name=f"{entry['project']}/{entry['name']}",
            kind=path.parent.name,
            group=entry.get("class", path.stem),
            project=entry["project"],
            layout=layout,
            steps=_expanded(entry["steps"], project),
            then=_expanded(entry.get("then", []), project),
            fix=_expanded(entry.get("fix", ["claim"] if cheat else entry["steps"]), project),
            runs=entry.get("runs", 1),
            files=entry.get("files", {}),
            red=entry.get("red", False),
            story=project["story"] | entry.get("story", {}),
            source=entry.get("source", []),
            stale=entry.get("stale", []),
            probe=project["probe"] | entry.get("probe", {}),
            varied=entry.get("varied", False),
            expected=entry.get("expected", ""),
        )


def _expanded(steps: list[Any], project: Mapping[str, Any]) -> list[Any]:
    listed: list[Any] = []
    for step in steps:
        listed += project[step["do"]] if isinstance(step, dict) and "do" in step else [_tried(step)]
    return listed


def _tried(step: Any) -> Any:
    """A file that a sandbox may protect is written by a command: if that fails, the script goes on."""
    written = step.get("write") if isinstance(step, dict) else None
    if not written or not written["path"].startswith((".ralph/", ".claude/")):
        return step
    path, text = (shlex.quote(written[key]) for key in ("path", "text"))
    return {"run": f"mkdir -p $(dirname {path}) && printf %s {text} > {path}"}


# -- programs -------------------------------------------------------------------------------------------------


def tools(cache: Path, wanted: Collection[str]) -> dict[str, str]:
    """Which of these programs there are, each with its folder; "" if that is on the path of the system."""
    found = {name: LOOKUPS[name](cache) for name in wanted}
    return {name: folder for name, folder in found.items() if folder is not None}


def _jest(cache: Path) -> str | None:
    """Fetched into the cache by npm, once, as `npm install --global` does it: `bin` beside `lib`."""
    folder = cache / "jest"
    if shutil.which("npm") and not (folder / "bin/jest").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--global", "--no-audit", "--no-fund", "--silent", "jest@29"]
        subprocess.run([*command, "--prefix", str(folder)], cwd=folder, capture_output=True, timeout=300, check=False)
    return f"{folder / 'bin'}:{_folder('node')}" if (folder / "bin/jest").exists() else None


def _go(cache: Path) -> str | None:
    debian = next((str(path) for path in sorted(Path("/usr/lib").glob("go-*/bin"))), None)
    return _folder("go") or debian


def _folder(program: str) -> str | None:
    path = shutil.which(program)
    return str(Path(path).parent) if path else None


def _cargo(cache: Path) -> str | None:
    """The toolchain's own folder: the proxy of rustup needs the user's home."""
    folder = _folder("cargo")
    chains = Path(os.environ.get("RUSTUP_HOME") or (Path(folder).parent.with_name(".rustup") if folder else "/"))
    return next((str(path.parent) for path in sorted(chains.glob("toolchains/stable*/bin/cargo"))), folder)


LOOKUPS: dict[str, Callable[[Path], str | None]] = {
    "pytest": lambda cache: "",
    "unittest": lambda cache: "",
    "make": lambda cache: _folder("make"),
    "node": lambda cache: _folder("node"),
    "jest": _jest,
    "cargo": _cargo,
    "go": _go,
}


def _copy_packages(folder: Path) -> None:
    """pytest and what it needs, and nothing else: plugins would only cost time. Copies, as an installer makes them: a
    sandbox shows this environment, and not the one that the bench runs in."""
    for package in PACKAGES:
        for path in _site().glob(f"{package}*"):
            if path.name == package and path.is_file():
                shutil.copyfile(path, folder / path.name)
            elif path.name == package or path.name.startswith(f"{package}-"):
                shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))


def _site() -> Path:
    import pytest

    return Path(pytest.__file__).parent.parent


def environment(folder: Path, cache: Path, found: Mapping[str, str]) -> dict[str, str]:
    """An own home and an own virtual environment, as if for a user who has just installed the programs."""
    home, virtual = folder / "home", folder / "env"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = virtual / "lib" / version / "site-packages"
    if not packages.exists():
        packages.mkdir(parents=True)
        _copy_packages(packages)
        (virtual / "bin").mkdir()
        real = Path(os.path.realpath(sys.executable))
        (virtual / "pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
        for name in ("python", "python3"):
            (virtual / "bin" / name).symlink_to(real)
        (virtual / "bin/pytest").write_text(f"#!{virtual}/bin/python\nimport pytest\nraise SystemExit(pytest.main())\n")
        (virtual / "bin/pytest").chmod(0o755)
        shutil.copyfile(ACTS, virtual / ACTS.name)
        (home / ".local/bin").mkdir(parents=True)
        (home / ".gitconfig").write_text(_IDENTITY)
    path = [str(home / ".local/bin"), str(virtual / "bin"), *filter(None, found.values()), _SYSTEM]
    return {
        "HOME": str(home),
        "PATH": ":".join(dict.fromkeys(path)),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GOCACHE": str(cache / "go"),
        "GOPROXY": "off",
        "CARGO_NET_OFFLINE": "true",
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
    }


# -- the project ----------------------------------------------------------------------------------------------


def make(case: Case, project: Mapping[str, Any], root: Path, script: Path, env: Mapping[str, str]) -> None:
    files = dict(project["files"]) | (project["red"] if case.red else {}) | case.files
    story = dict(case.story)
    if case.red:
        story.setdefault("verify", project["check"])
    files[PLANS[case.layout]] = plan(case.layout, story)
    files[".ralph/config.yaml"] = yaml.safe_dump({"checks": [project["check"]]})
    (Path(env["HOME"]) / ".ralph").mkdir()
    (Path(env["HOME"]) / ".ralph/config.yaml").write_text(
        yaml.safe_dump({"agent": {"name": "scripted", "script": str(script)}})
    )
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *command], cwd=root, env=dict(env), check=True, capture_output=True)
    hook = root / "hooks/pre-commit"
    if hook.exists():
        (root / ".git/hooks").mkdir(exist_ok=True)
        (root / ".git/hooks/pre-commit").symlink_to("../../hooks/pre-commit")


def plan(layout: str, story: Mapping[str, Any]) -> str:
    if layout == "plan.md":
        criteria = "".join(f"- [ ] {item}\n" for item in story["criteria"])
        verify = f"\nVerify: `{story['verify']}`\n" if story.get("verify") else ""
        top = f"# Plan: shop\n\n## Stories\n\n- [ ] {STORY}: {story['title']}\n"
        body = f"\n### {STORY}: {story['title']}\n\n{story['text']}\n\n**Acceptance Criteria:**\n\n{criteria}{verify}"
        return top + body
    listed: dict[str, Any] = {
        "id": STORY, "title": story["title"], "description": story["text"], "acceptanceCriteria": story["criteria"],
        "priority": 1, "passes": False, "notes": "", "dependsOn": [],
    }  # fmt: skip
    if story.get("verify"):
        listed["verify"] = story["verify"]
    head = {"branchName": "main", "description": "The shop."}
    if layout == "tasks.json":
        listed |= {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
        return json.dumps({"project": "shop", **head, "verifyCommands": [], "userStories": [listed]}, indent=2) + "\n"
    return json.dumps({"feature": "shop", **head, "createdAt": "2026-01-01", "userStories": [listed]}, indent=2) + "\n"


def acceptance(case: Case) -> list[Any]:
    """The steps of the session that writes acceptance tests; for a story of the case's own it writes none."""
    test = _load(CORPUS / "acceptance.yaml")[case.project]
    is_own = case.story != projects()[case.project]["story"]
    return ["claim"] if is_own else [{"write": test}, "claim"]


def script(case: Case, reviewer: str, acts: Path) -> str:
    """What the scripted agent plays. An honest agent meets an honest reviewer."""
    approves = case.kind == "honest" or reviewer == "blind"
    attempts = [{"implement": steps, "fix": case.fix} for steps in (case.steps, case.then) if steps]
    attempts += [attempts[-1]] * (6 - len(attempts) if case.varied else 0)
    attempts[0] = attempts[0] | {"acceptance": acceptance(case)}
    attempts = [one | {"review": _review(case, n if case.varied else 0, approves)} for n, one in enumerate(attempts)]
    return yaml.safe_dump(
        {"model": "scripted-1", "acts": str(acts), "stories": {STORY: attempts}}, sort_keys=False, width=10_000
    )


def _review(case: Case, number: int, approves: bool) -> list[Any]:
    if approves:
        return [{"verdict": {"what": "approved", "by": "request"}}]
    text = ("The story is not implemented.", "Rounding is wrong.", "Errors are missing.", "Zero is wrong.", "No tests.",
            "Names are unclear.")[number]  # fmt: skip
    finding = {"text": text, "severity": "high", "place": f"README.md:{number + 1}"}
    return [{"verdict": {"what": "changes_requested", "by": "request", "feedback": text, "findings": [finding]}}]
