from __future__ import annotations

import re
import runpy
from pathlib import Path

from ralph.config.keys import options
from ralph.config.profiles import PROFILES

ROOT = Path(__file__).parents[2]
PAGE: str = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))["settings_page"]()


def test_the_page_about_settings_is_what_the_schema_says() -> None:
    assert (ROOT / "docs" / "config.md").read_text() == PAGE, "python scripts/write_docs.py"


def test_every_key_is_on_the_page() -> None:
    assert all(f"`{key}`" in PAGE for key in options())


def test_a_duration_in_a_profile_has_its_unit_as_everywhere() -> None:
    durations = [(key, value) for values in PROFILES.values() for key, value in values.items() if "timeout" in key]
    assert durations
    assert [each for each in durations if not isinstance(each[1], str)] == []


def test_the_table_of_layouts_has_the_reviews_of_the_profiles() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|((?:[^|\n]+\|){4})$", (ROOT / "docs" / "layouts.md").read_text(), re.MULTILINE)
    reviews = {name: cells.split("|")[2].strip() for name, cells in rows if name in PROFILES}
    assert reviews == {name: values["review.when"].replace("-", " ") for name, values in PROFILES.items()}
