"""Process names that match more than the agent's own: what runs the agent, Ralph, or the machine."""

from ralph.hooks.guard.wordlist import one_of

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
