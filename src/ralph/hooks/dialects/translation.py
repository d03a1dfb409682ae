"""The names of other clients' tools, in Claude Code's, which the rules know."""

from ralph.hooks.policy import Values

Tools = dict[str, tuple[str, dict[str, str]]]
"""The client's tool → Ralph's name for it, and the client's inputs that have other names."""


def named(values: Values, tools: Tools, tool: str, given: object) -> Values:
    """The call, with the tool and its input in the form the rules read. An unknown tool keeps its name."""
    name, inputs = tools.get(tool, (tool, {}))
    known = given if isinstance(given, dict) else {}
    return {**values, "tool_name": name, "tool_input": {inputs.get(key, key): value for key, value in known.items()}}


_PATCHED = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def files_of_patch(patch: str) -> list[str]:
    """The files that a patch in the form of `apply_patch` names: all of them are judged. No file: it cannot be read."""
    lines = [line.strip() for line in patch.splitlines()]
    return [line[len(mark) :].strip() for line in lines for mark in _PATCHED if line.startswith(mark)]
