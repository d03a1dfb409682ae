"""The `.ralph/config.yaml` of a new workspace: the detected checks, each with its reason. `ralph init --examples`:
files to read and copy from, like seed 003's `templates/` and `config.yaml.example`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ralph.core.ports import Naming, PlanRef, ProjectFacts
from ralph.core.text import one_line
from ralph.plans.registry import all_layouts, traits
from ralph.prompts.templates import library
from ralph.setup.toolchain import ProposedCheck, Toolchain
from ralph.setup.write_files import Existing, NewFile, Placed, place

_TITLE = "# Settings of this workspace. `ralph config show --origin` lists every key, its value and its source."


def first_config(ref: PlanRef, toolchain: Toolchain, *, in_plan: bool) -> str:
    """`in_plan`: the plan file itself holds the commands that prove it."""
    lines = [_TITLE, "", *_place(ref)]
    if in_plan:
        where = ref.path.relative_to(ref.root).as_posix()
        lines += [f"# The commands that prove a story are in {where} (verifyCommands). Checks listed here run as well."]
    else:
        lines += ["# The checks that prove a story. The loop runs these commands itself; only they decide."]
    if toolchain.checks and not in_plan:
        lines += ["checks:", *(line for check in toolchain.checks for line in _check(check))]
    else:
        lines += ["# checks:", "#   - name: test", '#     command: "make test"']
    if toolchain.off:
        lines += ["", "# Off. To use one, uncomment it and move it under `checks:`."]
        lines += [f"# {line}" for check in toolchain.off for line in _check(check)]
    if toolchain.also:
        lines += ["", "# Also found; another command does the same job:"]
        lines += [f"# {line}" for check in toolchain.also for line in _check(check)]
    return "\n".join(lines) + "\n"


def _place(ref: PlanRef) -> list[str]:
    """A plan outside the default folders has to be named."""
    if (
        not traits(ref.layout).any_folder
        or ref.folder.parent == ref.root / ".ralph"
        or ref.folder == ref.root / "ralph"
    ):
        return []
    return ["# The folder of tasks.json.", f"ralph_dir: {_quoted(ref.folder.relative_to(ref.root).as_posix())}", ""]


def _check(check: ProposedCheck) -> list[str]:
    lines = [
        f"  # {one_line(check.why)} ({one_line(check.file)})" if check.file else f"  # {one_line(check.why)}",
        f"  - name: {_quoted(check.name)}",
        f"    command: {_quoted(check.command)}",
    ]
    return [*lines, f"    cwd: {_quoted(check.cwd)}"] if check.cwd else lines


def _quoted(text: str) -> str:
    """A YAML scalar: unquoted if it is a plain word, else double-quoted as in JSON."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text) and text.lower() not in ("true", "false", "null", "yes", "no"):
        return text
    return json.dumps(text)


_FOLDER = ".ralph/examples"
_EXAMPLE = """\
# Settings of a workspace: .ralph/config.yaml; of a user: ~/.ralph/config.yaml.
# `ralph config show --origin` lists every key with its value; docs/config.md explains them.
max_iterations: 30
timeout: 15m
rate_limit_per_hour: 100

checks: ["pytest -q", "ruff check ."]
baseline: strict                # or no-worse: failures from before the run do not reject a story

budget:
  run_usd: 20

circuit_breaker:
  no_progress_threshold: 3
  same_error_threshold: 5

branch:
  prefix: "feature/"
  auto_create: true
"""


def write_examples(root: Path, now: float, *, force: bool = False) -> Placed:
    texts = {"config.yaml.example": _EXAMPLE}
    for prompt in ("feature-prompt", "feature-prompt-tdd"):
        texts[f"{prompt.removeprefix('feature-')}.md.example"] = library(prompt)
    facts = ProjectFacts(name="user-login", date="2026-01-31T09:00:00Z", verify=("pytest -q",))
    for layout in all_layouts():
        ref = layout.refer(root, "1" if traits(layout.NAME).naming is Naming.NUMBERED else "user-login")
        plan = layout.scaffold(ref, facts)[ref.path.relative_to(root).as_posix()]
        # A file called tasks.json or prd.json in a folder of .ralph/ would be a plan.
        is_taken = traits(layout.NAME).has_pipeline or f"{ref.path.name}.example" in texts
        texts[f"{f'{layout.NAME}-' if is_taken else ''}{ref.path.name}.example"] = plan
    existing = Existing.BACK_UP if force else Existing.KEEP
    files = [NewFile(f"{_FOLDER}/{path}", text.encode(), existing) for path, text in texts.items()]
    return place(root, files, now)
