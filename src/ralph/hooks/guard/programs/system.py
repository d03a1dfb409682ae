"""The machine: privileges, power, the network, the kernel, the clock."""

from ralph.hooks.guard.invoke import Invocation, invoke
from ralph.hooks.guard.marks import UNKNOWN
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.wordlist import one_of

_SUDO_VALUED = "CDghpRrTtUu"


def become(call: Invocation) -> str | None:
    """sudo, doas, pkexec and others: denied; where a project allows them, what they run is judged."""
    if call.args in (["-V"], ["-h"]):
        return UNKNOWN
    call.deny("privilege")
    if call.name in ("su", "runuser"):
        command = Options(call.args, "cs", ("--command",)).value("-c", "--command")
        return call.run_text(command) if command else None
    options = Options(call.args, _SUDO_VALUED if call.name == "sudo" else "u", (), stops=True)
    rest = options.rest
    while rest and "=" in rest[0]:
        rest = rest[1:]
    if options.has("-s", "-i") and rest:
        return call.run_text(" ".join(rest))
    return invoke(call.shell, rest, call.stdin, {}) if rest else None


def rights(call: Invocation) -> None:
    call.deny("privilege")


def enter(call: Invocation) -> str | None:
    """chroot, nsenter, unshare: another root, or the root of another system."""
    rest = Options(call.args, "tSG", ("--target", "--userspec"), stops=True).rest
    call.deny("privilege")
    return call.run(rest[1:] if call.name == "chroot" else rest)


def power(call: Invocation) -> None:
    if call.name in ("init", "telinit") and not {"0", "1", "6", "s", "S"} & set(call.args):
        return
    if call.name == "shutdown" and "-c" in call.args:
        return
    call.deny("shutdown")


def firewall(call: Invocation) -> None:
    looks = {
        "-L",
        "-S",
        "--list",
        "status",
        "list",
        "--list-all",
        "-V",
        "--version",
        "-nL",
        "-vnL",
        "-nvL",
        "-Ln",
        "verbose",
    }
    if not looks & set(call.args):
        call.deny("system", "This changes firewall rules")


def network_settings(call: Invocation) -> None:
    changes = {"add", "del", "delete", "flush", "set", "down", "up", "replace", "disconnect", "modify", "off"}
    if changes & set(call.args):
        call.deny("system", "This changes network settings")


def settings(call: Invocation) -> None:
    """hostname, clock, kernel parameters, SELinux, boot entries."""
    args = call.args
    if call.name == "sysctl" and not (
        "-w" in args or "--write" in args or "-p" in args or any("=" in arg for arg in args)
    ):
        return
    if call.name in ("hostnamectl", "timedatectl") and (not args or args[0] in ("status", "show", "list-timezones")):
        return
    if call.name in (
        "hostname",
        "hwclock",
        "efibootmgr",
        "defaults",
        "nvram",
        "pmset",
        "spctl",
        "csrutil",
        "reg",
        "sc",
    ):
        looks = (
            "read",
            "find",
            "-r",
            "--show",
            "-v",
            "-f",
            "-i",
            "-p",
            "-g",
            "status",
            "query",
            "--status",
            "-I",
            "-s",
            "-d",
        )
        if not args or args[0] in looks:
            return
    call.deny("system")


def keychain(call: Invocation) -> None:
    words = call.args[:1]
    if words and words[0].startswith(("find-", "dump-", "export")):
        call.deny("exfiltration", "This shows passwords")
    if words and words[0].startswith(("delete-", "add-trusted", "set-key", "unlock")):
        call.deny("privilege")


def windows(call: Invocation) -> None:
    text = " ".join(call.args).lower()
    if call.name == "schtasks" and "/query" in text:
        return
    if call.name == "wevtutil" and not text.startswith(("cl", "clear")):
        return
    if call.name == "vssadmin" and "delete" not in text:
        return
    if call.name == "net" and not any(word in text for word in ("/add", "stop", "/delete")):
        return
    if call.name == "netsh" and not any(word in text for word in ("set", "add", "delete", "reset")):
        return
    names = {"schtasks": "persistence", "wevtutil": "audit", "net": "privilege", "netsh": "system"}
    call.deny(names.get(call.name, "devices"))


JUDGES = {
    "security": keychain,
    **dict.fromkeys(one_of("sudo su doas pkexec runuser gosu su-exec sudoedit run0 dzdo"), become),
    **dict.fromkeys(one_of("visudo passwd chpasswd usermod useradd userdel adduser deluser"), rights),
    **dict.fromkeys(one_of("groupadd groupdel gpasswd chsh chfn newgrp setcap vipw addgroup"), rights),
    **dict.fromkeys(one_of("dscl dseditgroup authconfig chage groupmod setpriv capsh"), rights),
    **dict.fromkeys(("chroot", "nsenter", "unshare"), enter),
    **dict.fromkeys(one_of("shutdown reboot halt poweroff init telinit kexec"), power),
    **dict.fromkeys(("Stop-Computer", "Restart-Computer"), power),
    **dict.fromkeys(one_of("iptables ip6tables nft ufw firewall-cmd pfctl ipset"), firewall),
    **dict.fromkeys(one_of("ip ifconfig route nmcli networksetup resolvectl wg-quick"), network_settings),
    **dict.fromkeys(one_of("sysctl hostnamectl timedatectl hostname hwclock setenforce efibootmgr"), settings),
    **dict.fromkeys(one_of("modprobe insmod rmmod grub-install update-grub nvram pmset spctl"), settings),
    **dict.fromkeys(one_of("csrutil defaults tccutil reg sc bcdedit bless fdesetup semodule"), settings),
    **dict.fromkeys(one_of("wevtutil schtasks vssadmin diskpart format Format-Volume Clear-Disk"), windows),
    **dict.fromkeys(one_of("cipher net netsh format.com"), windows),
}
