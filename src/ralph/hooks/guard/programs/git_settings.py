"""git's configuration: some of its values are programs, and some disable hooks."""

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import UNKNOWN, is_known
from ralph.hooks.guard.options import Options

_PROGRAMS = (
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "sequence.editor",
    "diff.external",
    "credential.helper",
    "gpg.program",
    "init.templatedir",
    "uploadpack.packobjectshook",
)
_READS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--show-origin", "--name-only")


def judge(call: Invocation, key: str, value: str, lasts: bool) -> None:
    """`lasts`: written to a file, not only for this one command."""
    key = key.lower()
    if key == "core.hookspath" and not value.startswith((".husky", ".githooks")):
        call.deny("tampering", "This makes git use other hooks or none")
    if key.startswith("alias."):
        command = value[1:] if value.startswith("!") else f"git {value}"
        call.run_text(command)
    elif (
        key.startswith("pager.")
        or key in _PROGRAMS
        or key.endswith((".cmd", ".clean", ".smudge", ".textconv", ".helper"))
    ):
        if is_known(value) and (" " in value or "!" in value or "/" in value):
            call.run_text(value.lstrip("!"))
    elif key.startswith("core.") and key.endswith("command"):
        call.run_text(value)
    elif key == "protocol.ext.allow" and value == "always":
        call.deny("remote-code", "This lets a repository URL run commands")


def configure(call: Invocation, args: list[str]) -> str | None:
    options = Options(args, "f", ("--file", "--blob", "--type", "--default"))
    rest = options.rest
    if rest[:1] == ["set"] and len(rest) > 2:
        rest = rest[1:]
    if options.has(*_READS) or rest[:1] in (["get"], ["list"]):
        return UNKNOWN
    if options.has("-e", "--edit") or rest[:1] == ["edit"]:
        return UNKNOWN
    if rest and (options.has("--unset", "--unset-all", "--remove-section") or rest[0] in ("unset", "remove-section")):
        if any(word.lower() == "core.hookspath" for word in rest):
            call.deny("tampering", "This makes git use other hooks")
        return UNKNOWN
    if len(rest) > 1:
        judge(call, rest[0], rest[1], lasts=True)
        if rest[0].lower().startswith("alias."):
            call.shell.vars["git:" + rest[0]] = [rest[1]]
    return UNKNOWN
