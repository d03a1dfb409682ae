"""Sample plans in every layout, for the conformance suite and the benchmarks.

A new layout gets one entry in `SAMPLES`; nothing else has to be told about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

NAMES = {"plan.md": "1", "steps": "", "spec.md": "", "snarktank": ""}
"""What to call a plan of a layout; any feature name does for the others."""


def sample(layout: str, stories: int, *, odd: bool = False) -> bytes:
    """A valid plan. The first half is done; stories depend on the one before, two out of three times, if they can.

    With `odd` it has what real files have: unknown keys or paragraphs, non-ASCII text, unusual spellings.
    """
    return SAMPLES[layout](stories, odd).encode()


def plan_name(layout: str) -> str:
    return NAMES.get(layout, "login")


def title(number: int) -> str:
    return f"Export report {number} as a file"


def criteria(number: int) -> list[str]:
    return [
        f"`report export {number}` writes report-{number}.csv",
        "The first line of the file names the columns",
        "An unknown report number ends with exit code 64",
    ]


def _story(number: int, stories: int) -> dict[str, Any]:
    return {
        "id": f"US-{number:03}",
        "title": title(number),
        "description": "As a user, I want the report as a file so that I can send it.",
        "acceptanceCriteria": criteria(number),
        "priority": number,
        "passes": number <= stories // 2,
        "notes": "The exporter does it.",
        "dependsOn": [f"US-{number - 1:03}"] if number % 3 != 1 else [],
    }


def _tasks_json(stories: int, odd: bool) -> str:
    items = []
    for number in range(1, stories + 1):
        story = _story(number, stories)
        passes = story["passes"]
        review = {"reviewStatus": "approved" if passes else None, "reviewCount": int(passes), "reviewFeedback": ""}
        items.append(story | review)
    top = {"project": "reports", "branchName": "ralph/reports", "description": "Reports as files."}
    return _json(top | {"verifyCommands": ["make test"], "userStories": items}, "userStories", odd)


def _feature(stories: int, odd: bool) -> str:
    items = [_story(number, stories) for number in range(1, stories + 1)]
    top = {"feature": "login", "branchName": "feature/login", "description": "d", "createdAt": "2026-01-31T09:30:00Z"}
    return _json(top | {"userStories": items}, "userStories", odd)


def _snarktank(stories: int, odd: bool) -> str:
    items = [_story(number, stories) for number in range(1, stories + 1)]
    top = {"project": "reports", "branchName": "ralph/reports", "description": "Reports as files."}
    return _json(top | {"userStories": items}, "userStories", odd)


def _steps(stories: int, odd: bool) -> str:
    items = []
    for number in range(1, stories + 1):
        story = _story(number, stories)
        items.append(story | {"status": "done" if story.pop("passes") else "todo", "attempts": 0})
    return _json({"project": "reports", "tasks": items}, "tasks", odd)


def _json(document: dict[str, Any], key: str, odd: bool) -> str:
    if not odd:
        return json.dumps(document, indent=2) + "\n"
    document = {"$schema": "./plan.schema.json", **document, "after": {"x": [1, 2.50, {"deep": None}], "ü": "ß"}}
    for number, story in enumerate(document[key]):
        story["owner"] = "Zoë 日本 🚀"
        if number % 2:
            story["size"] = {"points": 3, "unit": []}
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return text.replace('"priority": 2,', '"priority" : 2.0e0 ,').replace("reviewCount", "\\u0072eviewCount", 1)


def _plan_md(stories: int, odd: bool) -> str:
    items = [f"- [{_mark(n, stories)}] US-{n:03}: {title(n)}" for n in range(1, stories + 1)]
    note = "\nZoë wrote this on [2026-01-29]; see `- [ ] US-999: not a story`.\n" if odd else ""
    blocks = [
        f"### US-{n:03}: {title(n)}\n\nAs a user, I want the report as a file so that I can send it.\n\n"
        + "".join(f"- {line}\n" for line in criteria(n))
        for n in range(1, stories + 1)
    ]
    return "# Plan: reports\n" + note + "\n## Stories\n\n" + "\n".join(items) + "\n\n## Details\n\n" + "\n".join(blocks)


def _spec_md(stories: int, odd: bool) -> str:
    note = "\nZoë wrote this on [2026-01-29]; see `- [ ] **9.9** not a step`.\n" if odd else ""
    text = "# Spec: reports\n" + note
    for index in range(stories):
        phase, step = index // 10 + 1, index % 10 + 1
        if step == 1:
            text += f"\n## Phase {phase}\n\n"
        text += f"- [{_mark(index + 1, stories)}] **{phase}.{step}** {title(index + 1)} [TASK-{index + 1:04x}]\n"
    return text


def _mark(number: int, stories: int) -> str:
    return "x" if number <= stories // 2 else " "


SAMPLES: dict[str, Callable[[int, bool], str]] = {
    "plan.md": _plan_md,
    "tasks.json": _tasks_json,
    "steps": _steps,
    "feature": _feature,
    "spec.md": _spec_md,
    "snarktank": _snarktank,
}
