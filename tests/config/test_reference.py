from __future__ import annotations

import runpy
from pathlib import Path

from ralph.config.keys import options

ROOT = Path(__file__).parents[2]
PAGE: str = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))["settings_page"]()


def test_the_page_about_settings_is_what_the_schema_says() -> None:
    assert (ROOT / "docs" / "config.md").read_text() == PAGE, "python scripts/write_docs.py"


def test_every_key_is_on_the_page() -> None:
    assert all(f"`{key}`" in PAGE for key in options())
