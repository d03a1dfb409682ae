"""General-purpose connections: netcat, socat, ssh, tunnels. Agents must not get a shell at either end."""

from ralph.hooks.guard.acts import is_local_host
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import NETWORK, SECRET, UNKNOWN, is_known
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.programs.network import host_of, leaks
from ralph.hooks.guard.wordlist import one_of


def netcat(call: Invocation) -> str:
    options = call.options(
        valued="ecwpsqiIXxoGTkmO", valued_long=("--exec", "--sh-exec", "--lua-exec", "--source-port")
    )
    if options.has("-e", "--exec", "--sh-exec", "--lua-exec") or options.value("-c"):
        call.deny("remote-shell", "This gives the other end of a connection access to a program")
    return judge_socket(call, options.rest, listens=options.has("-l"), probes=options.has("-z"))


def judge_socket(call: Invocation, words: list[str], listens: bool = False, probes: bool = False) -> str:
    """A raw connection: probing a port is fine, and so is the local machine."""
    hosts = [host_of(word) for word in words if not word.isdigit() and not word.startswith("-")]
    if probes or (not listens and hosts and is_local_host(hosts[0])):
        return UNKNOWN + NETWORK
    if SECRET in call.stdin:
        leaks(call, hosts[0] if hosts else "another machine")
    if listens and call.stdin and not is_known(call.stdin):
        call.deny("exfiltration", "This serves data to anyone who connects")
    if call.stdin and not is_known(call.stdin):
        call.deny("exfiltration", "This sends raw data to another machine")
    return NETWORK


def relay(call: Invocation) -> str:
    """socat."""
    for word in call.args:
        lower = word.lower()
        if lower.startswith(("exec:", "system:", "shell:")):
            call.deny("remote-shell", "This gives the other end of a connection access to a program")
    if any(word.lower().startswith(("tcp", "udp", "openssl", "ssl")) for word in call.args):
        hosts = [word.split(":")[1] for word in call.args if word.count(":") > 1]
        return judge_socket(call, hosts or ["another"], listens="listen" in " ".join(call.args).lower())
    return UNKNOWN


_SSH_VALUED = "bcDEeFIiJLlmOopQRSWwB"


def secure_shell(call: Invocation) -> str:
    options = Options(call.args, _SSH_VALUED, (), stops=True)
    for name, value in options.values:
        if name == "-o" and value.lower().startswith(
            ("proxycommand", "localcommand", "permitlocalcommand", "knownhostscommand")
        ):
            call.run_text(value.partition("=")[2] or value.partition(" ")[2])
    if options.has("-V", "-G", "-Q") or not options.rest:
        return UNKNOWN
    host, command = options.rest[0], options.rest[1:]
    while command and command[0].startswith("-"):
        command = command[2:] if command[0][1:2] in _SSH_VALUED and len(command[0]) == 2 else command[1:]
    if options.has("-R", "-D", "-w") or any(arg.startswith("-R") for arg in call.args):
        call.deny("remote-shell", "This opens a tunnel to another machine")
    if SECRET in call.stdin or any(SECRET in word for word in command):
        leaks(call, host)
    if host.startswith("git@"):
        return UNKNOWN
    if options.has("-N") or (options.has("-L") and not command):
        return UNKNOWN
    inner = call.shell.elsewhere()
    text = " ".join(command) or call.stdin
    if not text:
        call.deny("remote-shell", f"This opens a shell on {host}")
        return NETWORK
    from ralph.hooks.guard.programs.shells import judge_script

    judge_script(inner, text, call.argv, call.stdin if command else "")
    if call.stdin and not is_known(call.stdin) and command and text.split()[0] in ("cat", "tar", "tee", "dd"):
        call.deny("exfiltration", f"This sends files to {host}")
    return NETWORK


def with_password(call: Invocation) -> str:
    return call.run(Options(call.args, "pfdPe", (), stops=True).rest)


def tunnel(call: Invocation) -> str:
    if call.args[:1] and call.args[0] in ("version", "help", "config", "--version", "status"):
        return UNKNOWN
    call.deny("remote-shell", "This exposes this machine to others")
    return UNKNOWN


def weapon(call: Invocation) -> str:
    call.deny("remote-shell")
    return NETWORK


def telnet(call: Invocation) -> str:
    return judge_socket(call, call.args)


JUDGES = {
    **dict.fromkeys(one_of("nc ncat netcat nc.traditional nc.openbsd"), netcat),
    "socat": relay,
    "telnet": telnet,
    **dict.fromkeys(one_of("ssh autossh mosh slogin dbclient"), secure_shell),
    "sshpass": with_password,
    **dict.fromkeys(one_of("ngrok cloudflared localtunnel lt chisel frpc bore tailscale"), tunnel),
    **dict.fromkeys(one_of("msfvenom msfconsole pwncat pwncat-cs hydra sqlmap evil-winrm"), weapon),
}
