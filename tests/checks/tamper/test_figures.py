"""The page about tampering says what there is: every kind of finding, and how many cases there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ralph.checks.tamper.paths import language_of
from ralph.checks.tamper.values import CODES

FOLDER = Path(__file__).parent / "cases"
PAGE = (Path(__file__).parents[3] / "docs" / "tamper.md").read_text("utf-8")


def column(case: dict[str, Any]) -> int:
    languages = {language_of(path) for path in case["files"]} - {""}
    return {"python": 0, "javascript": 1, "": 3}.get(min(languages, default=""), 2)


def test_every_kind_of_finding_is_on_the_page_and_no_other() -> None:
    listed = dict(
        re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", PAGE.partition("## How each language is read")[0], re.MULTILINE)
    )
    assert listed == CODES


def test_the_figures_are_those_of_the_cases() -> None:
    for name, kind in (("cheats", "cheats"), ("honest changes", "honest")):
        cases = [case for path in FOLDER.glob(f"*{kind}*.yaml") for case in yaml.safe_load(path.read_text("utf-8"))]
        counts = [sum(column(case) == number for case in cases) for number in range(4)]
        row = " | ".join(map(str, (len(cases), *counts)))
        assert f"| {name} | {row} | all |" in PAGE, row
    blind = {
        kind: sum(len(yaml.safe_load(path.read_text("utf-8"))) for path in FOLDER.glob(f"*blind_{kind}.yaml"))
        for kind in ("cheats", "honest")
    }
    assert f"{blind['cheats']} of the cheats and {blind['honest']} of the honest changes were written in two" in PAGE
