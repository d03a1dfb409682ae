"""The pages hang together: every link leads somewhere, every page is on the site, and what is quoted exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for where in ("*.md", "docs/**/*.md", "examples/**/*.md") for path in ROOT.glob(where))

NO_PAGE = "examples/planned.md"
README_LINES = 100
"""About two screens and the links."""


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def links(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [each for each in found if not each.startswith(("https://", "mailto:"))]


def anchors(text: str) -> set[str]:
    """The names that a Markdown page gives its headings."""
    names: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        names.add(name if name not in names else f"{name}-1")
    return names


def test_what_a_link_is() -> None:
    assert links("[a](b.md#c) `[x](y)` [d](https://e)\n```\n[f](g)\n```\n") == ["b.md#c"]
    assert anchors("# `ralph init`: set-up\n## A [b](c) & d\n") == {"ralph-init-set-up", "a-b--d"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text()), f"{page.name}: {link}"


def test_every_page_is_on_the_site_and_in_the_reading_order() -> None:
    entries = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    on_site = {path for section in entries for pages in section.values() for page in pages for path in page.values()}
    order = links((ROOT / "docs" / "README.md").read_text())
    assert {f"examples/{page.parent.name}.md" for page in ROOT.glob("examples/*/README.md")} <= on_site | {NO_PAGE}
    for page in ROOT.glob("docs/*.md"):
        assert page.name in on_site
        assert page.name == "README.md" or page.name in {link.partition("#")[0] for link in order}


def test_what_troubleshooting_quotes_is_said() -> None:
    """The parts of a quoted message between its ellipses stand close to each other, in this order, in the source."""
    source = "\n".join(path.read_text() for path in ROOT.glob("src/ralph/**/*.py"))
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)
    quoted = [quote for row in rows for quote in re.findall(r"`([^`]+)`", row) if " " in quote and "ralph" not in quote]
    assert len(quoted) > 10
    for quote in quoted:
        parts = [re.escape(part.strip()) for part in re.split(r"…|\d+", quote)]
        assert re.search(r"[^\n]{0,99}".join(parts), source), f"nothing says {quote!r}"


def test_a_word_is_explained_in_one_glossary() -> None:
    code = (ROOT / "ARCHITECTURE.md").read_text().partition("## Glossary")[2].partition("\n## ")[0]
    tables = [re.findall(r"^\| ([^|]+) \|", text, re.M)[2:] for text in (code, (ROOT / "docs/glossary.md").read_text())]
    words = [{word.strip() for row in rows for word in row.split(",")} for rows in tables]
    assert min(map(len, words)) > 15
    assert words[0] & words[1] == set()


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len([line for line in lines if not line.startswith("<!--")]) <= README_LINES
