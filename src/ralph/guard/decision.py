"""Decide whether a command may run."""

import os

from ralph.guard.patterns import one_of

_SAFE = one_of(
    """
    ls pwd echo cat head tail wc diff cmp stat file du df which whoami id uname tree grep egrep fgrep rg ag true
    false sleep basename dirname realpath cut nl jq yq seq tsc eslint prettier jest vitest mocha pytest ruff
    mypy black isort flake8 pylint pyright tox nox coverage rspec rubocop phpunit golangci-lint gofmt rustfmt
    rustc clang-format shellcheck hadolint yamllint markdownlint stylelint biome printf test column ps free
    uptime lsof ctest cmake bats
    """
)
"""Harmless with any arguments, as long as they are plain words."""

_SAFE_PAIRS = {
    "git": one_of("status diff log show blame add rev-parse ls-files describe shortlog whatchanged grep"),
    "npm": one_of("test t ci install i ls list outdated audit view run-script start"),
    "yarn": one_of("test install list why"),
    "pnpm": one_of("test install list why"),
    "go": one_of("test build vet fmt version env list doc mod"),
    "cargo": one_of("test build check clippy fmt tree bench doc"),
    "pip": one_of("list show freeze install check"),
    "docker": one_of("ps images logs version info inspect"),
    "kubectl": one_of("get describe logs version explain"),
}

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./=:,@%+^")
_SPECIAL = (
    *("/.", "/etc/", "/proc/", "/run/", "/dev/", "id_", "shadow", "credentials", "netrc", " -o", "--output", "--pre"),
    *("--ext-diff", "--raw", "_auth", "secret"),
)
"""Secrets, and options that write or run something: these commands have to be parsed."""

_RISKY = one_of(
    """
    rm rmdir unlink shred wipe dd mkfs truncate sudo su doas pkexec kill killall pkill shutdown reboot halt poweroff
    push reset clean restore checkout stash reflog gc prune filter-branch update-ref merge branch chmod chown chattr
    curl wget nc ncat socat telnet ssh scp sftp rsync publish upload deploy destroy delete drop flushall crontab
    systemctl launchctl eval exec bash sh zsh source base64 xxd python python3 perl ruby node php awk docker kubectl
    helm terraform aws gcloud az psql mysql mongo mongosh redis-cli sqlite3 history find xargs mv tee dropdb unset trap
    alias env printenv iex irm remove-item invoke-expression iptables mount umount fdisk parted format ralph claude
    hooks passwd useradd usermod visudo at batch printf tar gh glab tag fetch commit config gpg vault op pass
    service fuser twine helm pulumi tofu yank unpublish remove uninstall cp rebase
    """
)
_RISKY_PARTS = (
    "secret",
    "TOKEN",
    "_KEY",
    "/.",
    "/dev/",
    ">",
    "~/.",
    "/etc",
    "$(",
    "`",
    "\\x",
    "\\0",
    "\\1",
    "${",
    "|",
    "&",
)


def is_plain(command: str) -> bool:
    """Programs with plain words, one after the other, that are all harmless with any arguments."""
    if not _PLAIN.issuperset(command.replace("&&", " ").replace("2>&1", " ").replace(" | ", " ")):
        return False
    if any(part in command for part in _SPECIAL):
        return False
    for piece in command.replace("&&", "\n").replace(" | ", "\n").split("\n"):
        words = piece.replace("2>&1", " ").split()
        if not words or not _is_safe(words):
            return False
    return True


def _is_safe(words: list[str]) -> bool:
    name = words[0]
    if name in _SAFE:
        return True
    pair = _SAFE_PAIRS.get(name)
    return pair is not None and len(words) > 1 and words[1] in pair


def is_risky(text: str) -> bool:
    """For a command that cannot be parsed: does it contain a risky word?"""
    if any(part in text for part in _RISKY_PARTS):
        return True
    for letter in "\t\n;|&<>(){}'\"`$\\=/!,":
        text = text.replace(letter, " ")
    return not _RISKY.isdisjoint(text.split())


TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from ralph.guard.state import Shell

_LONGEST = 100_000
_NOWHERE = "/the/workspace"
"""Stands for an unknown workspace."""


class Decision:
    def __init__(self, denied: bool, category: str = "", reason: str = "") -> None:
        self.denied, self.category, self.reason = denied, category, reason

    @property
    def severity(self) -> str:
        from ralph.guard.categories import BY_ID

        found = BY_ID.get(self.category)
        return found.severity if found else ("medium" if self.denied else "")


ALLOWED = Decision(False)


def judge_command(command: str, cwd: str, section: dict[str, object]) -> Decision:
    """`section` is the compiled `guard:` of the settings; without its `workspace`, `cwd` is the workspace."""
    if not section.get("deny") and is_plain(command):
        return ALLOWED
    if len(command) > _LONGEST:
        return _unreadable(command, "too long")
    from ralph.guard.state import Denied, TooMuch
    from ralph.guard.syntax import Unreadable

    shell = _shell(cwd, section)
    try:
        _judge(shell, command)
    except Denied as denied:
        return Decision(True, denied.category, denied.reason)
    except Unreadable as problem:
        return _unreadable(command, str(problem))
    except (TooMuch, RecursionError):
        return _unreadable(command, "too complex")
    return ALLOWED


def _judge(shell: "Shell", command: str) -> None:
    from ralph.guard.evaluator import end, run_script
    from ralph.guard.parser import parse
    from ralph.guard.taint import without_marks

    run_script(shell, parse(without_marks(command)))
    end(shell)


def _unreadable(command: str, problem: str) -> Decision:
    if not is_risky(command):
        return ALLOWED
    from ralph.guard.categories import BY_ID

    return Decision(
        True, "unreadable", f"The guard cannot parse this command ({problem}). {BY_ID['unreadable'].advice}"
    )


def _shell(cwd: str, section: dict[str, object]) -> "Shell":
    from ralph.guard.paths import Places, normal
    from ralph.guard.state import Rules, Shell
    from ralph.guard.taint import Names, without_marks

    cwd = normal(without_marks(cwd)) if cwd.startswith("/") else "/"
    given = section.get("workspace")
    workspace = normal(given) if isinstance(given, str) and given.startswith("/") else cwd
    is_guess = workspace == "/"
    if is_guess:
        workspace = cwd = _NOWHERE
    names = Names()
    temp = section.get("writable")
    folders = tuple(each for each in temp if isinstance(each, str)) if isinstance(temp, (list, tuple)) else ()
    shell = Shell(Places(workspace, _home(workspace), folders, names), names, Rules(section))
    shell.places.is_guess = is_guess
    shell.places.follows_links = section.get("links") is True
    checkout, clone = section.get("checkout"), section.get("clone")
    if isinstance(checkout, str) and isinstance(clone, str):
        shell.places.alias = (checkout, clone)
    shell.cwd = cwd if cwd != "/" else workspace
    return shell


def _home(workspace: str) -> str:
    """The home folder of the workspace's owner, which matters more than that of this process."""
    parts = workspace.split("/")
    if len(parts) > 2 and parts[1] in ("home", "Users"):
        return "/".join(parts[:3])
    if parts[1] == "root":
        return "/root"
    return os.environ.get("HOME") or "/home/user"
