"""Output as displayed: without colours, cursor movements, progress bars, and the prefixes of monorepo tools."""

import re

_LONGEST_HEAD = 200_000
_LONGEST_TAIL = 600_000
_LONGEST_LINE = 1_000

ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[()#][0-9A-Za-z]|"
    r"\x1b[=>78A-Za-z]|[\x00-\x08\x0e-\x1a]"
)
_FIXED = (
    r"^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?[ \t]|#\d+ \d+\.\d+ |"
    r"\[(?:INFO|ERROR|WARNING|WARN|info|error|warn)\] ?|[\w.-]+[ \t]+\| )"
)
"""A CI log's time, a step of `docker build`, the level of a Maven or sbt line, a service of `docker compose`."""
_NAMED = r"^(@?[\w.@/-]+(?::[\w:./-]+)?:|\[[\w@./:# -]+\]:?|@?[\w.@/-]+ [\w:.-]+[:$|]) "
"""`web:test: `, `@acme/web: `, `[web] `, `packages/web test: `: only when they repeat."""
_OFTEN = 3
_BLANKS = dict.fromkeys(map(ord, "\xa0\u2009\u202f"), " ")
"""Non-breaking and thin: pnpm puts them around its labels."""
_OWN = ("Tests:", "Error:", "FAIL:", "ERROR:", "E:", "Failure:", "Time:", "Snapshots:", "error:", "make:", "at:")


def clean(output: str) -> str:
    if len(output) > _LONGEST_HEAD + _LONGEST_TAIL:
        output = output[:_LONGEST_HEAD] + "\n" + output[-_LONGEST_TAIL:]
    if "\x1b" in output or any(char in output for char in "\x00\x07\x08"):
        output = re.sub(ESCAPES, "", output)
    output = output.replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    output = re.sub(r"\n{4,}", "\n\n\n", output)
    if any(len(line) > _LONGEST_LINE for line in output.split("\n")):
        output = "\n".join(_shortened(line) for line in output.split("\n"))
    bare = _without_prefixes(output)
    return output if bare == "" else f"{output}\n{bare}"


def _shortened(line: str) -> str:
    """Shorten long lines: a JSON report on one line has its counts at either end, and patterns are slow."""
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE // 2] + " … " + line[-_LONGEST_LINE // 2 :]


def _without_prefixes(text: str) -> str:
    """The lines that had a prefix, repeated without it. The original stays: a guess removes nothing."""
    fixed, named = re.compile(_FIXED), re.compile(_NAMED)
    counts: dict[str, int] = {}
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if match := fixed.match(line):
            found.append(("", line[match.end() :]))
        elif (match := named.match(line)) and match[1] not in _OWN:
            counts[match[1]] = counts.get(match[1], 0) + 1
            found.append((match[1], line[match.end() :]))
    often = [rest for name, rest in found if not name or counts[name] >= _OFTEN or name.endswith("]:")]
    return "\n".join(often)
