"""A third-party package that cannot be used: Ralph names it, and everything else works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import ralph_here
from support.plugins import EXAMPLES, register

LAYOUT = (EXAMPLES / "layout-plugin/src/ralph_layout_todo/__init__.py").read_text()
AGENT = (EXAMPLES / "agent-plugin/src/ralph_agent_acme/__init__.py").read_text()
BROKEN = {
    "no-module": (None, "cannot be loaded: No module named 'broken_package'"),
    "syntax": ("def (:\n", "cannot be loaded: invalid syntax (__init__.py, line 1)"),
    "raises": ("raise KeyError('x')\n", "cannot be loaded: KeyError: 'x'"),
    "exits": ("import sys\nsys.exit(3)\n", "cannot be loaded: SystemExit: 3"),
}
LAYOUTS = BROKEN | {
    "no-detect": (LAYOUT.replace("def detect(", "def find_plans("), "cannot be loaded: it does not define detect"),
    "detect-raises": (LAYOUT.replace('    ref = refer(root, "todo")', "    raise ValueError(1)"), "ValueError: 1"),
}
AGENTS = BROKEN | {"no-find": (AGENT.replace("def find(", "def find_it("), "cannot be loaded: it does not define find")}
PACKAGE = "(package ralph-broken 0.3)"
Install = Callable[[str, str, "str | None"], None]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(group: str, name: str, text: str | None) -> None:
        site = tmp_path / "site"
        register(site, monkeypatch, "ralph-broken", "0.3", f"[{group}]\n{name} = broken_package\n")
        monkeypatch.delitem(sys.modules, "broken_package", raising=False)
        if text is not None:
            (site / "broken_package").mkdir()
            (site / "broken_package" / "__init__.py").write_text(text)

    return install


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    return folder


@pytest.mark.parametrize("case", LAYOUTS)
def test_a_broken_layout_is_named_and_the_others_work(case: str, broken: Install, project: Path) -> None:
    text, reason = LAYOUTS[case]
    broken("ralph.layouts", "todo.txt", text)
    is_loaded = case == "detect-raises"
    listing = ralph_here("init", "--help", cwd=project)
    assert listing.code == 0, listing.err
    assert "tasks.json" in listing.out
    assert ("todo.txt" in listing.out) is is_loaded
    (project / ".ralph").mkdir()
    (project / ".ralph" / "todo.txt").write_text("(A) Say hello id:US-001\n")
    status = ralph_here("status", cwd=project)
    assert status.code == 78
    assert f"the layout `todo.txt` {PACKAGE} " in status.err
    assert reason in status.err
    assert "fix it, or `pip uninstall ralph-broken`" in status.err
    doctor = ralph_here("doctor", "--json", cwd=project)
    lines = [line for line in doctor.json["findings"] if line["topic"] == "packages"]
    assert [line["level"] for line in lines] == ["ok" if is_loaded else "warn"]
    assert is_loaded or (reason in lines[0]["text"] and "pip uninstall ralph-broken" in lines[0]["fix"])
    start = ralph_here("init", "shop", "--no-input", cwd=project)
    assert start.code == 0, start.err
    assert start.err.count(PACKAGE) == (0 if is_loaded else 1)
    assert ralph_here("status", cwd=project).code == 0
    if not is_loaded:
        wanted = ralph_here("init", "--layout", "todo.txt", cwd=project)
        assert wanted.code == 78
        assert wanted.err.count(reason) == 1


@pytest.mark.parametrize("case", AGENTS)
def test_a_broken_agent_is_named_and_the_others_work(case: str, broken: Install, project: Path) -> None:
    text, reason = AGENTS[case]
    broken("ralph.agents", "acme", text)
    start = ralph_here("init", "shop", "--no-input", "--story", "Say hello", "--commit", cwd=project)
    assert start.code == 0, start.err
    run = ralph_here("run", "--plain", "--agent", "acme", cwd=project)
    assert run.code == 78, run.out + run.err
    assert f"the agent `acme` {PACKAGE} {reason}" in run.err
    assert "internal error" not in run.err
    doctor = ralph_here("doctor", "--json", cwd=project)
    (line,) = [line for line in doctor.json["findings"] if line["topic"] == "packages"]
    assert line["level"] == "warn"
    assert reason in line["text"]


def test_a_reader_that_raises_loses_its_events_and_not_the_session(
    broken: Install, project: Path, tmp_path: Path
) -> None:
    careless = AGENT.replace("    try:\n        record:", "    if True:\n        record:").split("    except (")[0]
    broken("ralph.agents", "acme", careless + "    return []\n")
    program = tmp_path / "acme"
    program.write_text(
        "#!/bin/sh\ncat > /dev/null\necho 'no JSON'\necho 'nor this'\necho hello > hello.txt\n"
        """echo '{"type": "end", "ok": true, "usd": 0.25}'\n"""
        """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"\n"""
    )
    program.chmod(0o755)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", project, "config", key, "ada@example.com"], check=True)
    ralph_here("init", "shop", "--no-input", "--story", "Say hello", "--commit", cwd=project)
    with (project / ".ralph" / "config.yaml").open("a") as file:
        file.write(
            f"agent:\n  name: acme\n  command: [{program}]\nreview:\n  when: never\n"
            "checks:\n  - {name: hello, command: test -f hello.txt}\n"
        )
    subprocess.run(["git", "-C", project, "add", "-A"], check=True)
    subprocess.run(["git", "-C", project, "commit", "-qm", "Settings"], check=True)
    run = ralph_here("run", "--plain", "--trust", "--allow-broken-checks", cwd=project)
    assert run.code == 0, run.out + run.err
    notice = "the agent `acme` cannot read some of its client's output: JSONDecodeError"
    assert (run.out + run.err).count(notice) == 1
    assert "0.25" in ralph_here("report", "--json", cwd=project).out
