"""Killing processes: the agent's own are fine, others are not."""

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import EVERYONE, PARENT, UNKNOWN
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.programs.broad import is_broad, is_ours


def kill(call: Invocation) -> str:
    args = call.args
    if not args or args[0] in ("-l", "-L", "--list", "--table"):
        return UNKNOWN
    if args[0] in ("-s", "-n", "--signal") and len(args) > 1:
        signal, targets = args[1], args[2:]
    elif args[0].startswith("-") and (len(args) > 1 or args[0] != "-1"):
        signal, targets = args[0].lstrip("-"), args[1:]
    else:
        signal, targets = "", args
    if signal in ("0", "EXIT"):
        return ""
    for target in targets:
        if target == "--":
            continue
        if target in ("1", "-1", "0") or EVERYONE in target:
            call.deny("kill", "This kills processes you did not start")
        if PARENT in target:
            call.deny("tampering", "This kills the program the agent runs in")
    return ""


def kill_by_name(call: Invocation) -> str:
    """pkill and killall."""
    args = [arg for arg in call.args if not (arg.startswith("-") and arg[1:].lstrip("SIG").isdigit())]
    options = Options(args, "uUgGPstFo" if call.name == "pkill" else "usZyo", ("--signal", "--user", "--euid", "--uid"))
    if (options.has("-l", "-V", "--list") and call.name == "killall") or "-0" in call.args:
        return ""
    if options.has("-u", "-U", "--user", "--euid", "--uid") and not options.rest:
        call.deny("kill", "This kills all processes of a user")
    for pattern in options.rest:
        if is_ours(pattern):
            call.deny("tampering", "This kills Ralph or the agent")
        if is_broad(pattern) or EVERYONE in pattern:
            call.deny("kill", f"This kills every process named {pattern}, not only yours")
    if options.has("-v", "--inverse") or (not options.rest and not options.has("-P", "-t", "-g", "-F", "-s")):
        call.deny("kill")
    return ""


def everybody(call: Invocation) -> str:
    call.deny("kill")
    return ""


def by_file(call: Invocation) -> str:
    """fuser -k: every process that uses a file, a mount or a port."""
    options = call.options(valued="nM")
    if options.has("-k", "--kill") and (
        options.has("-m", "-M") or any(path in ("/", "/home", ".") for path in options.rest)
    ):
        call.deny("kill")
    return UNKNOWN


def windows(call: Invocation) -> str:
    text = " ".join(call.args).lower()
    if "*" in text or any(name in text for name in ("explorer", "svchost", "winlogon", "csrss", "node", "python")):
        call.deny("kill")
    return ""


def terminal(call: Invocation) -> str | None:
    """tmux and screen: they run commands, type them, and kill sessions."""
    words = call.args
    if "kill-server" in words or (words[:2] == ["kill-session", "-a"]):
        call.deny("kill", "This kills all sessions")
    if words[:1] and words[0] in ("send-keys", "send"):
        rest = Options(words[1:], "tN").rest
        call.run_text(" ".join(word for word in rest if word not in ("Enter", "C-m", "C-c", "ENTER")))
    elif words[:1] and words[0] in (
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "run-shell",
        "run",
    ):
        rest = Options(words[1:], "stncFxye").rest
        call.run_text(" ".join(rest))
    elif call.name == "screen":
        options = Options(words, "SXcehpstT", stops=True)
        if text := next((value for name, value in options.values if name == "-X"), ""):
            call.run_text(" ".join(options.rest) if text in ("stuff", "exec") else "")
        else:
            call.run(options.rest)
    return None


JUDGES = {
    "kill": kill,
    "pkill": kill_by_name,
    "killall": kill_by_name,
    "skill": kill_by_name,
    "killall5": everybody,
    "xkill": everybody,
    "fuser": by_file,
    "taskkill": windows,
    "Stop-Process": windows,
    "tmux": terminal,
    "screen": terminal,
}
