"""Processes, privileges and login keys, as far as one rule a line does not suffice."""

from ralph.guard import paths as at
from ralph.guard.invocation import Invocation, Options, invoke
from ralph.guard.parser import unescape
from ralph.guard.patterns import one_of, wordlist
from ralph.guard.programs.rules import apply_rules
from ralph.guard.taint import EVERYONE, PARENT, UNKNOWN

_BROAD = one_of(
    """
    node nodejs python python2 python3 java ruby perl php bash sh zsh fish dash sshd ssh systemd init dockerd
    containerd docker postgres mysqld redis-server nginx cron crond login tmux screen code cursor electron
    chrome firefox deno bun npm npx yarn pnpm go cargo gunicorn kubelet dbus-daemon NetworkManager rsyslogd
    auditd launchd WindowServer Finder Xorg gnome-shell supervisord agent mysql mongod uwsgi
    """
)
OURS = ("ralph", "claude", "codex")


def is_broad(pattern: str) -> bool:
    """Whether it matches processes of others: everything, an interpreter, a system server."""
    plain = pattern.strip("^$").replace("[", "").replace("]", "").replace("\\", "")
    if plain.strip(".*+?") == "" or len(plain.strip(".*")) == 1:
        return True
    return bool({plain.strip(".* "), plain.strip(".* ").lower()} & _BROAD)


def is_ours(pattern: str) -> bool:
    plain = "".join(
        letter if letter.isalnum() or letter in "-_/" else " " for letter in pattern.lower().replace("[", "")
    )
    return "/" not in plain and any(word in OURS or word.startswith("ralph-loop") for word in plain.split())


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
    if options.has("-v", "--inverse") or (not options.rest and not options.has("-P", "-g", "-F")):
        call.deny("kill")
    return ""


def terminal(call: Invocation) -> None:
    """tmux and screen: they run commands, type them, and kill sessions."""
    words = call.args
    apply_rules(call, call.name, words)
    if words[:1] and words[0] in ("send-keys", "send"):
        rest = Options(words[1:], "tN").rest
        call.run_text(" ".join(word for word in rest if word not in ("Enter", "C-m", "C-c", "ENTER")))
    elif words[:1] and words[0] in wordlist("new-session new new-window neww split-window splitw run-shell run"):
        rest = Options(words[1:], "stncFxye").rest
        call.run_text(" ".join(rest))
    elif call.name == "screen":
        options = Options(words, "SXcehpstT", stops=True)
        if text := next((value for name, value in options.values if name == "-X"), ""):
            call.run_text(unescape(" ".join(options.rest)) if text in ("stuff", "exec") else "")
        else:
            call.run(options.rest)


def become(call: Invocation) -> str | None:
    """sudo, doas, pkexec and others: denied; where a project allows them, what they run is judged."""
    if call.args in (["-V"], ["-h"]):
        return UNKNOWN
    call.deny("privilege")
    if call.name in ("su", "runuser"):
        command = call.options().value("-c", "--command")
        return call.run_text(command) if command else None
    options = call.options()
    rest = options.rest
    while rest and "=" in rest[0]:
        rest = rest[1:]
    if options.has("-s", "-i") and rest:
        return call.run_text(" ".join(rest))
    return invoke(call.shell, rest, call.stdin, {}) if rest else None


def enter(call: Invocation) -> str | None:
    """chroot, nsenter, unshare: another root, or the root of another system."""
    rest = call.options().rest
    call.deny("privilege")
    return call.run(rest[1:] if call.name == "chroot" else rest)


def key(call: Invocation) -> None:
    """ssh-keygen: a new key pair in the workspace is probably for a test."""
    options = call.options()
    if options.has("-l", "-F", "-L", "-y", "-B", "-e", "-i", "-H", "-Y"):
        return
    path = options.value("-f") or ""
    if options.has("-R") and not path:
        call.deny("persistence", "This changes which machines are trusted")
    kind = call.shell.locate(path).kind if path else at.STARTUP
    if kind not in (at.INSIDE, at.TEMP, at.UNSURE):
        call.deny("persistence", "This creates or changes login keys")
