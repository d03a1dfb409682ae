"""Write the pages of docs/ that are made from the code: commands, exit codes, settings.

.venv/bin/python scripts/write_docs.py [--check]
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from ralph.cli.grammar import read_all
from ralph.cli.reference import cli_page, exit_codes_page
from ralph.config.reference import reference

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main(arguments: list[str]) -> int:
    pages = {"cli.md": cli_page(read_all()), "exit-codes.md": exit_codes_page(), "config.md": reference()}
    stale = 0
    for name, text in pages.items():
        path = DOCS / name
        found = path.read_text() if path.exists() else ""
        if found == text:
            continue
        stale = 1
        if "--check" in arguments:
            ours, theirs = text.splitlines(keepends=True), found.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(theirs, ours, f"docs/{name}", "as the code has it"))
        else:
            path.write_text(text)
            print(f"wrote docs/{name}")
    return stale if "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
