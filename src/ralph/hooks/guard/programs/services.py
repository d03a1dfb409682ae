"""What persists after a session or records it: services, cron, login keys, logs."""

from ralph.hooks.guard import places as at
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.wordlist import one_of

_LOOKS = one_of(
    """
    status show list-units list-unit-files is-active is-enabled is-failed cat list-timers list-sockets help
    get-default list-dependencies show-environment --version list print blame list-jobs get dumpstate version
    """
)


_POWER = one_of(
    """
    poweroff reboot halt kexec suspend hibernate rescue emergency isolate exit hybrid-sleep
    """
)


def services(call: Invocation) -> None:
    words = call.options(valued="Htnop", valued_long=("--host", "--type", "--state", "--property")).rest
    if call.name in ("service", "rc-service"):
        if "--status-all" in call.args or words[1:2] == ["status"]:
            return
        call.deny("persistence", "This starts, stops or changes a service")
    if words and words[0] in _POWER:
        call.deny("shutdown")
    if any(name in ("auditd", "rsyslog", "syslog", "auditd.service") for name in words[1:]) and words[0] not in _LOOKS:
        call.deny("audit", "This changes what the system logs")
    if words and words[0] not in _LOOKS:
        call.deny("persistence", "This starts, stops or changes a service")


def login_sessions(call: Invocation) -> None:
    words = call.options().rest
    if words and words[0] in _POWER:
        call.deny("shutdown")
    if words and words[0].startswith(("kill", "terminate")):
        call.deny("kill")
    if words and words[0] in ("enable-linger", "disable-linger"):
        call.deny("persistence")


def cron(call: Invocation) -> None:
    options = call.options(valued="u")
    if options.has("-l") and not options.rest:
        return
    call.deny("persistence", "This changes scheduled jobs")


def at_time(call: Invocation) -> None:
    if not {"-l", "-c", "-V"} & set(call.args):
        call.deny("persistence", "This runs something after the session ends")


def journal(call: Invocation) -> None:
    if any(arg.startswith(("--vacuum", "--rotate", "--flush", "--relinquish")) for arg in call.args):
        call.deny("audit")


def audit(call: Invocation) -> None:
    if not {"-l", "-s", "-v"} & set(call.args):
        call.deny("audit")


def kernel_log(call: Invocation) -> None:
    if call.options(valued="lnf").has("-c", "-C", "--clear", "--read-clear"):
        call.deny("audit")


def key(call: Invocation) -> None:
    """ssh-keygen: a new key pair in the workspace is probably for a test."""
    options = call.options(valued="tbfNCPmOYnIsVaRFDEGTwWz")
    if options.has("-l", "-F", "-L", "-y", "-B", "-e", "-i", "-H", "-Y"):
        return
    path = options.value("-f") or ""
    if options.has("-R") and not path:
        call.deny("persistence", "This changes which machines are trusted")
    kind = call.shell.locate(path).kind if path else at.STARTUP
    if kind not in (at.INSIDE, at.TEMP, at.UNSURE):
        call.deny("persistence", "This creates or changes login keys")


def copy_key(call: Invocation) -> None:
    call.deny("persistence", "This authorizes a key on another machine")


def process_manager(call: Invocation) -> None:
    words = call.options().rest
    if (words and words[0] in ("startup", "unstartup", "save")) or words[:2] in (
        ["delete", "all"],
        ["stop", "all"],
        ["kill"],
    ):
        call.deny("persistence" if words[0] in ("startup", "save", "unstartup") else "kill")


def rotate(call: Invocation) -> None:
    if {"-f", "--force"} & set(call.args):
        call.deny("audit")


JUDGES = {
    **dict.fromkeys(one_of("systemctl service rc-service rc-update chkconfig update-rc.d launchctl"), services),
    **dict.fromkeys(("initctl", "sysv-rc-conf", "invoke-rc.d"), services),
    "loginctl": login_sessions,
    "crontab": cron,
    **dict.fromkeys(("at", "batch", "anacron"), at_time),
    "journalctl": journal,
    "auditctl": audit,
    "augenrules": audit,
    "dmesg": kernel_log,
    "logrotate": rotate,
    "ssh-keygen": key,
    "ssh-copy-id": copy_key,
    "pm2": process_manager,
}
