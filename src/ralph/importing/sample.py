"""What a recogniser sees of a file: its text, its name, its first JSON object, or its CSV columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.problems import Place
from ralph.importing.records import Record, decode, inner_records, records, slim
from ralph.plans.json_text import decode_object

_LINK = re.compile(r"\s*(?:\[[ xX~-]\]|\[[^\]\n]*\]\()")


class Sample(Struct, frozen=True):
    text: str
    file: str
    record: Record | None = None
    """The first object of a list or of lines, or the whole object."""
    columns: frozenset[str] = frozenset()
    """The header of a CSV file, in small letters."""

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2].lower()

    @property
    def is_markdown(self) -> bool:
        return self.record is None and not self.columns

    def has(self, pattern: re.Pattern[str]) -> bool:
        return self.is_markdown and bool(pattern.search(self.text))

    @property
    def keys(self) -> set[str]:
        """The keys of the first entry, in small letters without marks."""
        inner = inner_records(self.record) if self.record else None
        first = inner[0] if inner and isinstance(inner[0], dict) else self.record or {}
        return {slim(key) for key in first}


def look(text: str, file: str) -> Sample:
    """Raises BadData for JSON that cannot be read."""
    if text.lstrip()[:1] in ("[", "{") and not _LINK.match(text):
        return Sample(text, file, record=_first(text, file))
    return Sample(text, file, columns=columns_of(text))


def _first(text: str, file: str) -> Record:
    if text.lstrip().startswith("{"):
        found: Record = decode_object(text.lstrip().partition("\n")[0]) or decode(text, file)
        return found
    record = next((found for _, found in records(text, file)), None)
    if record is None:
        raise BadData("the list is empty", where=Place(file), hint="export one that has entries")
    return record


def columns_of(text: str) -> frozenset[str]:
    """Empty unless the first line is a header of at least four short names."""
    first = re.split(r"[\r\n]", text.lstrip("\ufeff"), maxsplit=1)[0]
    try:
        cells = next(csv.reader(io.StringIO(first), delimiter=delimiter_of(first)), [])
    except csv.Error:  # a cell of more than 128 KB
        return frozenset()
    if len(cells) < 4 or first.startswith(("#", "-", "*", "|", ">")) or any(len(cell) > 80 for cell in cells):
        return frozenset()
    return frozenset(cell.strip().lower() for cell in cells)


def delimiter_of(header: str) -> str:
    return max(",;\t", key=header.count)


def rows(text: str, file: str) -> Iterator[tuple[int, Record]]:
    """The rows of a CSV file with their lines. A column that occurs several times holds a list.

    A row with more cells than columns keeps the rest under an empty name, so that it is reported.
    """
    reader = csv.reader(
        io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter_of(text.partition("\n")[0])
    )
    try:
        header = [cell.strip() for cell in next(reader, [])]
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if any(cell.strip() for cell in cells):
                yield line, _row(header, cells)
    except csv.Error as error:
        raise BadData(f"not valid CSV: {error}", where=Place(file, reader.line_num), hint="export it again") from None


def _row(header: list[str], cells: list[str]) -> Record:
    row: Record = {}
    for at, cell in enumerate(cells):
        if not cell.strip():
            continue
        name = header[at] if at < len(header) else ""
        known = row.get(name)
        row[name] = cell if known is None else [*(known if isinstance(known, list) else [known]), cell]
    return row
