"""Files that an agent does not edit: the git folder, Ralph's own settings, what the checks are made of, elsewhere."""

import os
from fnmatch import fnmatchcase

from ralph.hooks.call import Call
from ralph.hooks.reads import real


def why_protected(call: Call, path: str) -> str:
    """A sentence that says why, and what to do instead; empty: the file may be edited."""
    policy = call.policy
    if policy is None or not policy.workspace:
        return ""
    target, root = real(path, call.cwd), os.path.realpath(policy.workspace)
    if not _is_below(target, root):
        if any(_is_below(target, os.path.realpath(folder)) for folder in policy.texts("writable")):
            return ""
        return f"{path} is outside of the workspace {root}. Work on files in it, or use the temporary folder."
    inside = os.path.relpath(target, root)
    if ".git" in inside.split(os.sep):
        return f"{path} belongs to git. Use git commands, and leave its folder alone."
    for pattern in policy.texts("protected"):
        if fnmatchcase(inside, pattern) or inside.startswith(pattern.rstrip("/") + "/"):
            return (
                f"{path} is Ralph's, or part of the checks, and stays as it is. Say in your notes what should change."
            )
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
