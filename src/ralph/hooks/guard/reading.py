"""Parse text to statements, with two parsers.

Shell is easy to misparse, and a command that two programs parse differently is how guards are bypassed. The grammar
comes first; it knows all of bash, but occasionally drops or splits a word. The second parser is ours. Where they
agree, that is the command. Where they do not, both results are followed, and both have to be harmless.
"""

from ralph.hooks.guard.shell import Group, Script, Unreadable, shape

_LONGEST = 100_000
_KEPT = 256
_memory: dict[str, Script] = {}


def read(text: str) -> Script:
    """Raises Unreadable if neither parser can parse it."""
    if (known := _memory.get(text)) is not None:
        return known
    if len(text) > _LONGEST:
        raise Unreadable("too long")
    script = _read(text.replace("\r\n", "\n"))
    if len(_memory) >= _KEPT:
        _memory.clear()
    _memory[text] = script
    return script


def _read(text: str) -> Script:
    from ralph.hooks.guard import second_reader, tree_reader

    try:
        first = tree_reader.read(text)
    except (Unreadable, RecursionError):
        first = None
    try:
        second = second_reader.read(text)
    except (Unreadable, RecursionError) as problem:
        if first is None:
            raise Unreadable(str(problem)) from None
        return first
    if first is None or _same(first, second):
        return second
    return [Group(first, is_subshell=True), *second]


def _same(first: Script, second: Script) -> bool:
    try:
        return shape(first) == shape(second)
    except RecursionError:
        return False
