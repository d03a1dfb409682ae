from __future__ import annotations

from pathlib import Path

from ralph.config.keys import options
from ralph.config.reference import reference

DOCS = Path(__file__).parents[2] / "docs" / "config.md"


def test_the_page_about_settings_is_what_the_schema_says() -> None:
    assert DOCS.read_text() == reference(), "python -m ralph.config.reference > docs/config.md"


def test_every_key_is_on_the_page() -> None:
    assert all(f"`{key}`" in reference() for key in options())
