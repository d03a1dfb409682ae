"""System package managers: installing is fine, removing is not."""

from ralph.hooks.guard.invoke import Invocation

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


JUDGES = {
    **dict.fromkeys((*_REMOVES, "dpkg", "rpm", "pacman", "yay"), packages),
    "update-alternatives": alternatives,
}
