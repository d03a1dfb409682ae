"""Recognizes most harmless commands without parsing them as a shell would, and without importing anything.

Two questions: `is_plain`, is it certainly harmless; and `is_risky`, does it contain a word of a harmful command.
"""

from ralph.hooks.guard.wordlist import one_of

_SAFE = one_of(
    """
    ls pwd echo cat head tail wc diff cmp stat file du df which whoami id uname tree grep egrep fgrep rg ag true
    false sleep basename dirname realpath cut nl jq yq seq tsc eslint prettier jest vitest mocha pytest ruff
    mypy black isort flake8 pylint pyright tox nox coverage rspec rubocop phpunit golangci-lint gofmt rustfmt
    rustc clang-format shellcheck hadolint yamllint markdownlint stylelint biome printf test column ps free
    uptime lsof ctest cmake pre-commit bats
    """
)
"""Harmless with any arguments, as long as they are plain words."""

_SAFE_PAIRS = {
    "git": one_of(
        """
    status diff log show blame add rev-parse ls-files describe shortlog whatchanged grep
    """
    ),
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
    *(".ssh", ".aws", ".gnupg", "shadow", "netrc", "credentials", "environ", "hosts.yml", ".kube", ".docker", "pypirc"),
    *(" -o", "--output", "--pre", "--ext-diff", ".pgpass", ".password-store", "sudoers", "/dev/"),
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
    hooks passwd useradd usermod visudo at batch printf tar
    """
)
_RISKY_PARTS = ("/dev/", ">", "~/.", "/etc", "$(", "`", "\\x", "\\0", "\\1", "${", "|", "&")


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
