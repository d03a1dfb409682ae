"""What the guard knows about programs: `programs.txt` and `rules.txt`, with sections and one line for each entry."""

import os

_MOST_LINES = 20_000
_lines: dict[tuple[str, str], list[str]] = {}


def load(name: str, beside: str = __file__) -> dict[str, str]:
    """The sections of a file beside a module, without comments, and with `$name` replaced by what it stands for."""
    with open(f"{os.path.dirname(beside)}/{name}.txt", encoding="utf-8") as stream:
        text = stream.read().replace("\\\n    ", "")
    for line in text[: text.index("\n[")].split("\n"):
        if line.startswith("$"):
            key, _, value = line.partition(" = ")
            text = text.replace(key, value)
    text = "\n".join([line for line in text.split("\n") if line[:1] != "#"])
    return dict(section.split("]\n", 1) for section in f"\n{text}".split("\n[")[1:])


def lines_about(table: str, name: str) -> list[str]:
    """The lines that start with the name, or with several joined by `|`; without these."""
    if (table, name) not in _lines:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        lines = table.split("\n") if name and name in table else []
        split = [line.partition(" ") for line in lines if name in line]
        _lines[table, name] = [rest for names, _, rest in split if name in names.split("|")]
    return _lines[table, name]


def lists(section: str) -> dict[str, tuple[str, ...]]:
    """Lists of words, each after its name and a colon."""
    found: dict[str, list[str]] = {}
    for word in section.split():
        if word[-1] == ":" and len(word) > 1:
            current = found.setdefault(word[:-1], [])
        else:
            current.append(word)
    return {name: tuple(words) for name, words in found.items()}


def options_of(name: str) -> tuple[str, tuple[str, ...], bool] | None:
    """The options of a program that have a value: their letters, and the long ones; and whether a command follows."""
    lines = lines_about(PROGRAMS["options"], name)
    if not lines:
        return None
    letters, *long = lines[0].split()
    return letters.replace("-", ""), tuple(each for each in long if each != "..."), "..." in long


PROGRAMS = load("programs")
NOTORIOUS = PROGRAMS["notorious"].split()
JUDGES = {name: judge for judge, names in lists(PROGRAMS["judges"]).items() for name in names}
"""Program → `module.function`."""
