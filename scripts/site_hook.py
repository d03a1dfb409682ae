"""For mkdocs: pages of the site that are not in docs/, and links that work on the site as they do in the repository."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = (path.parent.name for path in ROOT.glob("examples/*/README.md"))
ELSEWHERE = {
    **{name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{f"examples/{name}/README.md": f"examples/{name}.md" for name in EXAMPLES},
}
"""Pages by their path in the repository, with their path on the site."""
SOURCES = {on_site: path for path, on_site in ELSEWHERE.items()}
LINK = re.compile(r"(?<=\])\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    for path, on_site in ELSEWHERE.items():
        files.append(File.generated(config, on_site, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, **_: Any) -> str:
    """Turn links of the repository into links of the site, or into plain text if the site has no such page."""
    on_site = page.file.src_uri
    source = SOURCES.get(on_site, f"docs/{on_site}")

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        target = next((ELSEWHERE[name] for name in (path, f"{path}/README.md") if name in ELSEWHERE), None)
        if target is None:
            if not path.startswith("docs/"):
                return f"(`{path}` in the repository)"
            target = path.removeprefix("docs/")
        return f"({posixpath.relpath(target, posixpath.dirname(on_site) or '.')}{found[2] or ''})"

    text = LINK.sub(link, markdown)
    return re.sub(r"\[([^\]]*)\]\((`[^`]+` in the repository)\)", r"\1 (\2)", text)
