"""chmod, chown and similar: one file is fine, a tree or someone else's file is not."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import is_known

_NONE = ("000", "0", "a-rwx")


def change_mode(call: Invocation) -> str:
    recursive = any(arg == "--recursive" or (arg.startswith("-") and "R" in arg) for arg in call.args)
    words = [
        arg for arg in call.args if not (arg.startswith("--") or (arg.startswith("-") and set(arg[1:]) <= set("Rfvc")))
    ]
    if not words:
        return ""
    mode, paths = words[0], words[1:]
    if _gives_other_rights(mode):
        call.deny("privilege", "This lets a program run with its owner's privileges")
    breaks = _breaks(mode)
    for path in paths:
        if recursive and mode.isdigit() and (len(mode) < 3 or mode[-3] == "0"):
            call.deny("permissions", f"This makes everything below {path} unusable")
        if recursive and breaks and _is_wide(mode):
            call.deny("permissions", f"This makes everything below {path} world-writable")
        acts.change(
            call.shell, path, call.argv, "the permissions", (recursive and breaks) or _is_wide(mode) or mode in _NONE
        )
    return ""


def _gives_other_rights(mode: str) -> bool:
    if mode.isdigit():
        return len(mode) >= 4 and mode[-4] in "2467"
    return any("s" in clause.partition("+")[2] or "s" in clause.partition("=")[2] for clause in mode.split(","))


def _is_wide(mode: str) -> bool:
    if mode.isdigit():
        return mode[-1] in "2367"
    return any(
        clause.startswith(("a+", "o+", "ugo+", "+", "a=", "o=", "ugo=", "go+")) and "w" in clause and clause != "+w"
        for clause in mode.split(",")
    )


def _breaks(mode: str) -> bool:
    """World-writable, or no longer usable by the owner."""
    if not is_known(mode):
        return True
    if mode.isdigit():
        return mode[-1] in "2367" or (len(mode) < 3 or mode[-3] != "7")
    return _is_wide(mode) or any(clause.startswith(("a-", "u-", "-", "ugo-")) for clause in mode.split(","))


def change_owner(call: Invocation) -> str:
    options = call.options(valued_long=("--reference", "--from"))
    for path in options.rest[0 if options.has("--reference") else 1 :]:
        acts.change(call.shell, path, call.argv, "the owner", options.has("-R", "--recursive"))
    return ""


def change_attributes(call: Invocation) -> str:
    """ACLs and immutable files."""
    for path in [arg for arg in call.args if not arg.startswith(("-", "+", "="))][-1:]:
        acts.change(call.shell, path, call.argv, "the attributes", True)
    return ""


def windows(call: Invocation) -> str:
    if any(arg.lower() in ("/t", "/r", "/grant", "/f") for arg in call.args):
        call.deny("permissions")
    return ""


JUDGES = {
    "chmod": change_mode,
    "gchmod": change_mode,
    "chown": change_owner,
    "chgrp": change_owner,
    "gchown": change_owner,
    "setfacl": change_attributes,
    "chattr": change_attributes,
    "chflags": change_attributes,
    "icacls": windows,
    "takeown": windows,
}
