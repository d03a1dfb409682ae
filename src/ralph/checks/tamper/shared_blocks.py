"""Leaves out tests that are identical in both versions of a Python file, so that only the others are parsed.

What is left out becomes empty lines: line numbers stay. Helpers, fixtures and constants are never left out, because the
tests that did change may use them; where they differ, nothing is left out, because every test may mean something else.
"""

from __future__ import annotations

import re

from msgspec import Struct

_START = re.compile(r"(?:@|def |async def |class )")
_TEST = re.compile(r"(?:async )?def (?P<function>test\w*)|class (?P<group>\w*Test\w*)(?:\((?:\w+\.)*TestCase\))?:")
_SMALL = 3000
"""Characters. Less than this parses quickly."""


class Shared(Struct, frozen=True):
    old: str
    new: str
    left_out: int = 0
    """How many tests, or classes of tests."""


class _Block(Struct, frozen=True):
    text: str
    name: str
    """Of the test or class of tests; '' for everything else."""


def without_shared(old: str, new: str) -> Shared:
    if len(old) + len(new) < _SMALL:
        return Shared(old, new)
    before, after = _blocks(old), _blocks(new)
    if before is None or after is None or _context(before) != _context(after):
        return Shared(old, new)
    names = [block.name for block in (*before, *after) if block.name]
    same = {block.text for block in before} & {block.text for block in after}
    # A name that stands twice in one version may hide the first of the two.
    out = {b.text for b in before if b.name and b.text in same and names.count(b.name) == 2}
    return Shared(_blanked(before, out), _blanked(after, out), len(out))


def _blocks(text: str) -> list[_Block] | None:
    """Cut before everything that starts in the first column. None: some string may reach over a cut."""
    found: list[_Block] = []
    current: list[str] = []
    for line in text.splitlines(keepends=True):
        if _START.match(line) and not (current and _is_decorated(current)):
            found.append(_block(current))
            current = []
        elif current and line[0] not in " \t\n#)]}" and found and found[-1] is not None and _holds_definition(current):
            found.append(_block(current))  # a statement of the module after a function
            current = []
        current.append(line)
    found.append(_block(current))
    if any(block.text.count('"""') % 2 or block.text.count("'''") % 2 for block in found):
        return None
    return found


def _is_decorated(lines: list[str]) -> bool:
    """Only decorators so far: what follows belongs to them."""
    return lines[0].startswith("@") and not _holds_definition(lines)


def _holds_definition(lines: list[str]) -> bool:
    return any(line.startswith(("def ", "async def ", "class ")) for line in lines)


def _block(lines: list[str]) -> _Block:
    text = "".join(lines)
    head = next((line for line in lines if line.startswith(("def ", "async def ", "class "))), "")
    match = _TEST.match(head)
    return _Block(text, (match["function"] or match["group"]) if match else "")


def _context(blocks: list[_Block]) -> list[str]:
    """Everything but tests, imports and comments."""
    lines = (line.strip() for block in blocks if not block.name for line in block.text.split("\n"))
    return [line for line in lines if line and not line.startswith(("import ", "from ", "#"))]


def _blanked(blocks: list[_Block], out: set[str]) -> str:
    return "".join("\n" * block.text.count("\n") if block.text in out else block.text for block in blocks)
