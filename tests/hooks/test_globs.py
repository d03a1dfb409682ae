"""Protected files: the hook denies exactly what the loop restores, and the globs mean what the docs say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.schema import Config
from ralph.core.ports import Locations
from ralph.hooks.call import Call
from ralph.hooks.globs import matches
from ralph.hooks.places import why_protected
from ralph.hooks.policy import Policy
from ralph.plans.registry import layout
from ralph.run.watcher import protection
from ralph.session.hook_policy import PROTECTED
from ralph.workspace.own_files import bookkeeping

MEANINGS = {
    "tests/**": ("tests/a.py", "tests/deep/a.py", "TESTS/a.py", "!src/tests/a.py", "!tests.py"),
    "*.lock": ("uv.lock", "deep/poetry.lock", "a.lock/inside", "!lock", "!a.lock.md"),
    "conftest.py": (
        "conftest.py",
        "tests/conftest.py",
        "conftest.py/x",
        "!my_conftest.py",
    ),
    "./conftest.py": (
        "conftest.py",
        "!tests/conftest.py",
    ),
    "/conftest.py": (
        "conftest.py",
        "!tests/conftest.py",
    ),
    "scripts/check.sh": ("scripts/check.sh", "!check.sh", "!a/scripts/check.sh"),
    "ci/": (
        "ci/a",
        "deep/ci/a",
        "!cid/a",
    ),
    "src/**/test_*.py": (
        "src/test_a.py",
        "src/a/b/test_a.py",
        "!test_a.py",
    ),
    "[ab].txt": (
        "a.txt",
        "deep/b.txt",
        "!c.txt",
    ),
    "": ("!a",),
    "/": ("!a",),
}


@pytest.mark.parametrize("pattern", MEANINGS)
def test_a_glob_means_what_the_documentation_says(pattern: str) -> None:
    for name in MEANINGS[pattern]:
        assert matches(name.removeprefix("!"), pattern) is not name.startswith("!"), name


PARTS = st.sampled_from(["src", "tests", "Tests", "a.py", "conftest.py", ".ralph", "request.json", "runs", "uv.lock"])
PATTERN_PARTS = st.one_of(PARTS, st.sampled_from(["*", "**", "*.py", "t*", "?.py", "[a-t]*", "*.lock"]))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PATTERNS = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "./", "/"]),
    st.lists(PATTERN_PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
)
REPOSITORIES = ("", "work", "..")
"""Where the repository is, seen from the workspace: the same folder, nested in it, around it."""


@given(path=PATHS, patterns=st.lists(PATTERNS, min_size=1, max_size=3), inner=st.sampled_from(REPOSITORIES))
def test_the_hook_denies_what_the_loop_restores(path: str, patterns: list[str], inner: str) -> None:
    """Paths that are protected anyway (the rules of the run, git's own) are not compared."""
    root = Path("/somewhere/work")
    repo = Path(os.path.normpath(root / inner))
    found = layout("plan.md")
    ref = found.refer(root, "1")
    where: Locations = found.locations(ref)
    own = bookkeeping(ref, where, repo, Config())
    is_protected = protection(tuple(patterns), root, repo, own)
    assert is_protected is not None
    target = repo / path
    policy = Policy(
        {
            "workspace": str(root),
            "repository": str(repo),
            "protected": [*PROTECTED, *patterns],
            "own": list(own.paths_in(repo)),
        }
    )
    denied = why_protected(Call("PreToolUse", {"cwd": str(root)}, policy), str(target))
    if target.is_relative_to(root) and not any(matches(os.path.relpath(target, root), rule) for rule in PROTECTED):
        assert bool(denied) is is_protected(path)
