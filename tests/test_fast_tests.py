"""Which tests `scripts/test --fast` chooses."""

from __future__ import annotations

from pathlib import Path

from fast_tests import CORE, MOST, ROOT, groups


def test_what_changed_comes_first_then_the_core_then_what_uses_it(tmp_path: Path) -> None:
    for name in (
        "core/test_text.py",
        "host/test_far.py",
        "host/test_user.py",
        *(c.removeprefix("tests/") for c in CORE),
    ):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from ralph.core.text import one_line\n" if name.endswith("user.py") else "")
    changed = ["src/ralph/core/text.py", "tests/host/test_far.py", "docs/x.md", "src/ralph/core/untested.py"]
    found = dict(groups(changed, tmp_path))
    assert list(found) == ["what changed", "the core", "what uses it"]
    assert found["what changed"] == ["tests/core/test_text.py", "tests/host/test_far.py"]
    assert found["the core"] == list(CORE)
    assert found["what uses it"] == ["tests/host/test_user.py"]


def test_every_file_of_the_core_exists_and_few_others_are_added() -> None:
    assert all((ROOT / name).is_file() for name in CORE)
    found = dict(groups(["src/ralph/core/text.py", "src/ralph/core/plan.py"]))
    assert 0 < len(found["what uses it"]) <= MOST
