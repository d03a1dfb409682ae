"""Unknown programs. They are allowed unless their arguments give them away."""

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import NETWORK, is_known


def judge(call: Invocation) -> str | None:
    name = call.argv[0]
    if name.startswith(("http://", "https://")):
        call.deny("remote-code")
    if not is_known(name):
        return _unknown(call)
    if call.shell.files and call.shell.files.get(call.shell.full(name)) == NETWORK:
        call.deny("remote-code", "This runs a file that was just downloaded")
    return None


def _unknown(call: Invocation) -> str | None:
    """`$x …`: the arguments say enough if they belong to something destructive."""
    args = call.args
    if args[:1] == ["push"] or args[:2] == ["reset", "--hard"]:
        return call.run(["git", *args])
    if args[:1] == ["-c"] and len(args) > 1:
        call.run_text(args[1])
    return None


JUDGES = {"*": judge}
