"""Whatever a source says: it is refused with a sentence, or it becomes stories that every layout can hold."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.errors import BadData, PlanError
from ralph.core.plan import Plan
from ralph.core.ports import ProjectFacts
from ralph.importing import sources, wording
from ralph.importing.stories import Batch, Target, first_ids, in_order, make, sources_in
from ralph.plans.fresh import compose
from ralph.plans.registry import LAYOUTS, layout
from support.plans import plan_name

FACTS = ProjectFacts(name="x", date="2026-01-31T09:30:00Z")
PIECES = [
    *("- [ ] ", "- [x] ", "- ", "  - ", "1. ", "## ", "### Task 1: ", "### US-001: ", "**1.1** ", "US-001: ", "```\n"),
    *("> ", "<!--", "-->", "Verify: `make`", "Depends on: Task 1", "**Notes:**", "depends on #2", "\n", "\n\n", "\t"),
    *(
        "~~x~~",
        "[a-b]",
        "\u202e",
        "\x1b[31m",
        "\r\n",
        "word",
        "漢字",
        "|",
        "\\",
        "`",
        "*",
        "_",
        "    ",
        "<b>",
        "Expected: FAIL",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
_NAMES = LAYOUTS.built_in()


def held(batch: Batch) -> None:
    """The stories of a batch, written in every layout and read back."""
    items = in_order(batch.items)
    keys = [item.key for item in items]
    assert len(set(keys)) == len(keys)
    assert all(item.title.strip() for item in items if batch.kind not in _NAMES)
    for name in _NAMES:
        form = layout(name)
        ref = form.refer(Path("/w"), plan_name(name))
        text = form.scaffold(ref, FACTS)[ref.path.relative_to(ref.root).as_posix()]
        sample = form.parse(text.encode(), "f")
        made = make(items, first_ids(items, sample), "f", Target(layout=name, plan=sample))
        plan = Plan(name="x", stories=made.stories, order=sample.order, reviewed=sample.reviewed)
        read = compose(plan, form, ref, FACTS, phases=made.phases, exact=False).in_file
        assert set(sources_in(read)) >= set(keys)


@pytest.mark.parametrize("kind", ["", "checklist", "fix_plan", "plans"])
@settings(max_examples=60)
@given(text=texts)
def test_any_markdown_is_refused_or_held(kind: str, text: str) -> None:
    with contextlib.suppress(BadData):
        held(sources.read(text.encode(), "f.md", kind))


@settings(max_examples=60)
@given(bodies=st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_any_issue_is_refused_or_held(bodies: list[tuple[str, str]]) -> None:
    issues = [{"number": n, "title": title, "body": body} for n, (title, body) in enumerate(bodies, 1)]
    if all(wording.title(title) for title, _ in bodies):
        with contextlib.suppress(PlanError):  # a circle
            held(sources.read(json.dumps(issues).encode(), "f.json"))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-1, 1)
    | st.sampled_from(["", "x", "bd-1", "closed", "blocks"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "title", "number", "status", "dependencies", "depends_on_id", "type"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(value=values)
def test_any_json_is_refused_or_held(value: object) -> None:
    for kind in ("", "github", "beads"):
        with contextlib.suppress(BadData):
            held(sources.read(json.dumps(value).encode(), "f.json", kind))


@settings(max_examples=60)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    for kind in ("", "checklist", "github", "beads", "fix_plan", "plans"):
        with contextlib.suppress(BadData):
            sources.read(data, "f", kind)
