"""The machine: privileges, power, the network, the kernel, the clock."""

from ralph.guard import paths as at
from ralph.guard.invocation import Invocation, Options, invoke
from ralph.guard.patterns import one_of, wordlist
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
    return plain.strip(".* ") in _BROAD


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


def kill_on_windows(call: Invocation) -> str:
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
    elif words[:1] and words[0] in wordlist("new-session new new-window neww split-window splitw run-shell run"):
        rest = Options(words[1:], "stncFxye").rest
        call.run_text(" ".join(rest))
    elif call.name == "screen":
        options = Options(words, "SXcehpstT", stops=True)
        if text := next((value for name, value in options.values if name == "-X"), ""):
            call.run_text(" ".join(options.rest) if text in ("stuff", "exec") else "")
        else:
            call.run(options.rest)
    return None


_REMOVES = {
    "apt": ("remove", "purge", "autoremove", "full-upgrade", "dist-upgrade"),
    "apt-get": ("remove", "purge", "autoremove", "dist-upgrade"),
    "aptitude": ("remove", "purge"),
    "yum": ("remove", "erase", "autoremove"),
    "dnf": ("remove", "erase", "autoremove"),
    "zypper": ("remove", "rm"),
    "apk": ("del",),
    "snap": ("remove",),
    "flatpak": ("uninstall", "remove"),
    "brew": ("uninstall", "remove", "rm", "autoremove", "services"),
    "port": ("uninstall",),
    "emerge": ("--unmerge", "--depclean", "-C"),
    "choco": ("uninstall",),
    "winget": ("uninstall",),
}


def packages(call: Invocation) -> str | None:
    words = [arg for arg in call.args if not arg.startswith("-") or arg in _REMOVES.get(call.name, ())]
    if call.name == "brew" and words[:2] in (["services", "list"], ["services", "info"]):
        return None
    if {"--dry-run", "-s", "--simulate", "--just-print"} & set(call.args):
        return None
    if words and words[0] in _REMOVES.get(call.name, ()):
        call.deny("system", "This removes system packages or changes system services")
    hook = next((arg for arg in call.args if "Pre-Invoke" in arg or "Post-Invoke" in arg), "")
    if hook:
        call.run_text(hook.partition("=")[2].strip("\"'"))
    if call.name in ("dpkg", "rpm", "pacman"):
        flags = "".join(arg for arg in call.args if arg.startswith("-"))
        if (
            any(flag in flags for flag in ("-r", "-P", "--purge", "--remove", "-e", "--erase", "-R"))
            and "-q" not in flags
        ):
            call.deny("system", "This removes system packages")
    return None


def alternatives(call: Invocation) -> None:
    if not {"--display", "--list", "--query", "--get-selections"} & set(call.args):
        call.deny("system")


_DISK_LOOKS = one_of(
    """
    list status show info get -l -v --detail --examine -i print property luksdump usage apfs history iostat -f -a -n -j
    """
)
_DISK_HARM = one_of(
    """
    destroy delete erase remove format create zero stop rollback erasedisk secureerase erasevolume partitiondisk
    luksformat luksremovekey luksdelkey --zero-superblock --stop --create --remove sanitize reformat unmountdisk
    """
)
_CAN_LOOK = one_of("mount fsck btrfs diskutil nvme zfs zpool mdadm cryptsetup tune2fs")


def make_filesystem(call: Invocation) -> str:
    _on_devices(call, call.options(valued="tLbNUmiIEOTGcqV").rest[-2:])
    return ""


def partition(call: Invocation) -> str:
    """Inspecting is fine."""
    options = call.options(valued="bt")
    looks = {"-l", "--list", "--print", "-p", "--help", "-V", "print", "-d", "--dump", "-n", "--no-act"}
    if looks & (options.flags | set(options.rest)) and not {"rm", "mklabel", "mkpart", "--delete", "-Z"} & set(
        call.args
    ):
        return UNKNOWN
    _on_devices(call, options.rest[:1] if call.name != "wipefs" else options.rest)
    return ""


def _on_devices(call: Invocation, paths: list[str]) -> None:
    """On a regular file of the agent it is harmless."""
    kinds = {call.shell.locate(path).kind for path in paths if not path.isdigit()}
    if not kinds or not kinds <= {at.INSIDE, at.TEMP}:
        call.deny("devices")


def disks(call: Invocation) -> None:
    words = {arg.lower() for arg in call.args}
    if not words and call.name in ("mount", "swapon", "losetup", "zfs", "zpool"):
        return
    if call.name in _CAN_LOOK and words & _DISK_LOOKS and not words & _DISK_HARM:
        return
    if call.name in ("losetup", "hdparm", "swapon") and words & (_DISK_LOOKS | {"--show", "-s"}):
        return
    call.deny("devices")


_LOOKS = one_of(
    """
    status show list-units list-unit-files is-active is-enabled is-failed cat list-timers list-sockets help
    get-default list-dependencies show-environment --version list print blame list-jobs get dumpstate version
    """
)


_POWER = one_of("poweroff reboot halt kexec suspend hibernate rescue emergency isolate exit hybrid-sleep")


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
    looks = one_of("-L -S --list status list --list-all -V --version -nL -vnL -nvL -Ln verbose")
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
    if call.name in wordlist("hostname hwclock efibootmgr defaults nvram pmset spctl csrutil reg sc"):
        looks = wordlist("read find -r --show -v -f -i -p -g status query --status -I -s -d")
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
    **dict.fromkeys(one_of("mkfs mke2fs newfs mkdosfs *"), make_filesystem),
    **dict.fromkeys(one_of("fdisk sfdisk sgdisk gdisk parted cfdisk wipefs"), partition),
    **dict.fromkeys(
        one_of(
            """
            cryptsetup lvremove vgremove pvremove lvreduce pvcreate vgcreate lvcreate mdadm zpool zfs btrfs mount umount
            swapoff swapon mkswap losetup tune2fs resize2fs e2fsck fsck xfs_repair debugfs nvme diskutil hdparm
            blkdiscard badblocks dmsetup kpartx ddrescue partprobe multipath pvmove
            """
        ),
        disks,
    ),
    **dict.fromkeys((*_REMOVES, "dpkg", "rpm", "pacman", "yay"), packages),
    "update-alternatives": alternatives,
    "kill": kill,
    "pkill": kill_by_name,
    "killall": kill_by_name,
    "skill": kill_by_name,
    "killall5": everybody,
    "xkill": everybody,
    "fuser": by_file,
    "taskkill": kill_on_windows,
    "Stop-Process": kill_on_windows,
    "tmux": terminal,
    "screen": terminal,
}
