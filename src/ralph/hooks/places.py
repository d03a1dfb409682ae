"""Files that an agent must not edit: the git folder, Ralph's settings, files of the checks, paths elsewhere."""

import os

from ralph.hooks.call import Call
from ralph.hooks.globs import is_protected
from ralph.hooks.reads import real


def why_protected(call: Call, path: str) -> str:
    """A sentence that says why, and what to do instead; empty: the file may be edited."""
    policy = call.policy
    if policy is None or not policy.workspace:
        return ""
    target, root = real(call, path), os.path.realpath(policy.workspace)
    if not _is_below(target, root):
        if any(_is_below(target, os.path.realpath(folder)) for folder in policy.texts("writable")):
            return ""
        return (
            f"{path} is outside the workspace {root}. Work on files in it, or use the temporary folder; "
            "the user can allow a folder with the setting allow_paths."
        )
    if ".git" in os.path.relpath(target, root).lower().split(os.sep):  # where case does not count, `.GIT` is `.git`
        return f"{path} belongs to git. Use git commands; do not edit its folder."
    roots = (root, os.path.realpath(policy.text("repository") or root))
    if is_protected(target, policy.texts("protected"), roots, policy.texts("own")):
        return f"{path} belongs to Ralph or the checks and must not change. Note what should change instead."
    return ""


def is_inside(call: Call, path: str) -> bool:
    return call.policy is not None and _is_below(real(call, path), os.path.realpath(call.policy.workspace))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
