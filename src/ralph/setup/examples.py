"""`ralph init --examples`: files to read and copy from, like seed 003's `templates/` and `config.yaml.example`."""

from __future__ import annotations

from pathlib import Path

from ralph.core.ports import Naming, ProjectFacts
from ralph.plans.registry import all_layouts, traits
from ralph.prompts.templates import library
from ralph.setup.write_files import Existing, NewFile, Placed, place

FOLDER = ".ralph/examples"
CONFIG = """\
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
    texts = {"config.yaml.example": CONFIG}
    for prompt in ("feature-prompt", "feature-prompt-tdd"):
        texts[f"{prompt.removeprefix('feature-')}.md.example"] = library(prompt)
    facts = ProjectFacts(name="user-login", date="2026-01-31T09:00:00Z", verify=("pytest -q",))
    for layout in all_layouts():
        ref = layout.refer(root, "1" if traits(layout.NAME).naming is Naming.NUMBERED else "user-login")
        plan = layout.scaffold(ref, facts)[ref.path.relative_to(root).as_posix()]
        # A file called tasks.json or prd.json in a folder of .ralph/ would be a plan.
        texts[f"{f'{layout.NAME}-' if traits(layout.NAME).has_pipeline else ''}{ref.path.name}.example"] = plan
    existing = Existing.BACK_UP if force else Existing.KEEP
    files = [NewFile(f"{FOLDER}/{path}", text.encode(), existing) for path, text in texts.items()]
    return place(root, files, now)
