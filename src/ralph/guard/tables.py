"""What the guard knows about programs: `programs.txt` and `rules.txt`, with sections and one line for each entry."""

import os


def load(name: str) -> dict[str, str]:
    """The sections of a file, without comments, and with `$name` replaced by what it stands for."""
    with open(f"{os.path.dirname(__file__)}/{name}.txt", encoding="utf-8") as stream:
        text = stream.read().replace("\\\n    ", "")
    for line in text[: text.index("\n[")].split("\n"):
        if line.startswith("$"):
            key, _, value = line.partition(" = ")
            text = text.replace(key, value)
    text = "\n".join([line for line in text.split("\n") if line[:1] != "#"])
    return dict(section.split("]\n", 1) for section in f"\n{text}".split("\n[")[1:])


def lines_about(table: str, name: str) -> list[str]:
    """The lines that start with the name, or with several joined by `|`; without these."""
    found = []
    for line in table.split("\n") if name and name in table else ():
        names, _, rest = line.partition(" ")
        if name in line and name in names.split("|"):
            found.append(rest)
    return found


PROGRAMS = load("programs")
NOTORIOUS = PROGRAMS["notorious"].split()
JUDGES: dict[str, str] = {}
"""Program → `module.function`."""
for _word in PROGRAMS["judges"].split():
    if _word.endswith(":") and "." in _word:
        _judge = _word[:-1]
    else:
        JUDGES[_word] = _judge
