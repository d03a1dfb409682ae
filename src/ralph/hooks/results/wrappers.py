"""The command behind `env`, `timeout`, `npx`, `poetry run`, `docker compose exec web` and so on."""

from ralph.hooks.results.vocabulary import words as words_of

_PLAIN = words_of(
    "sudo doas env nohup nice ionice stdbuf unbuffer command exec builtin xvfb-run caffeinate chronic setsid catchsegv "
    "time gtime cross-env dotenv env-cmd watch xargs c8 nyc npx bunx pnpx uvx spring zeus retry flock chrt taskset "
    "unshare strace ltrace rtk lcov kcov winpty arch noglob nocorrect parallel reattach-to-user-namespace"
)
"""These take options, assignments, numbers, and then a command."""

_WITH_VALUE = words_of(
    "-u -n -k -s -p -c --package --signal --kill-after --interval -I -P -L -d --user --group -g -C --chdir -e -o -w "
    "--wait --conflict-exit-code -r --reporter"
)

_RUNS = {
    "poetry": ("run",),
    "uv": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pixi": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "micromamba": ("run",),
    "pipx": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "bun": ("x",),
    "mise": ("exec", "x"),
    "asdf": ("exec",),
    "rbenv": ("exec",),
    "pyenv": ("exec",),
    "direnv": ("exec",),
    "doppler": ("run",),
    "op": ("run",),
    "dotenvx": ("run",),
    "foreman": ("run",),
    "composer": ("exec",),
    "lerna": ("exec",),
    "nvm": ("exec", "run"),
    "fnm": ("exec",),
    "volta": ("run",),
    "devbox": ("run",),
}
"""Program → the subcommands that are followed by options and then a command."""

_ELSEWHERE = {
    "docker": ("exec", "run", "compose"),
    "docker-compose": ("exec", "run"),
    "podman": ("exec", "run", "compose"),
    "nerdctl": ("exec", "run", "compose"),
    "kubectl": ("exec",),
    "oc": ("exec",),
    "ssh": (),
    "nix": ("develop", "shell"),
    "nix-shell": (),
    "vagrant": ("ssh",),
    "devcontainer": ("exec",),
    "ddev": ("exec",),
    "lando": ("ssh",),
    "firejail": (),
    "bwrap": (),
    "chroot": (),
    "wsl": (),
}
"""They have too many options to list: the first word that is a known program is the command."""

_MOST_TAILS = 200
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "busybox", "fish"))


def base(word: str) -> str:
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2]


def is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "a").rstrip("+").isalnum() and not name[0].isdigit()


def unwrapped(words: list[str]) -> tuple[list[str], str]:
    """The words of the command itself, and the text of a shell command line if it was one (`bash -c TEXT`)."""
    for _ in range(12):
        words = _without_assignments(words)
        if not words:
            return [], ""
        name = base(words[0])
        if name in ("timeout", "gtimeout"):
            rest = _past_options(words[1:], skip=1)
        elif name in _PLAIN:
            rest = _past_options(words[1:])
        elif name == "script":
            return _after_flag(words, "c")
        elif name in _SHELLS:
            rest, text = _after_flag(words, "c")
            if text or not rest:
                return rest, text
            return rest, ""
        elif name == "eval":
            return [], " ".join(words[1:])
        elif name in _RUNS and (after := _after_subcommand(words, _RUNS[name])) is not None:
            rest = after
        elif name in ("coverage", "coverage3") and len(words) > 2 and words[1] == "run":
            rest = ["python", *_past_options(words[2:], keep=("-m",))]
        elif name in _ELSEWHERE and " " in words[-1] and (name == "ssh" or (words[-2][:1] == "-" and "c" in words[-2])):
            return [], words[-1]
        elif name in ("nix-shell", "vagrant", "lando", "heroku") and (text := _value_of(words, ("--run", "-c"))):
            return [], text
        else:
            return words, ""
        if rest == words:
            return words, ""
        words = rest
    return words, ""


def runs_elsewhere(words: list[str]) -> list[list[str]]:
    """For a program that runs commands elsewhere: every tail of its words that may be the command."""
    name = base(words[0])
    if name not in _ELSEWHERE:
        return []
    wanted = _ELSEWHERE[name]
    if wanted and not any(word in wanted for word in words[1:6]):
        return []
    starts = [at for at in range(1, len(words)) if not words[at].startswith("-")]
    return [words[at:] for at in starts[:_MOST_TAILS]]


def _without_assignments(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and is_assignment(words[at]):
        at += 1
    return words[at:]


def _past_options(words: list[str], skip: int = 0, keep: tuple[str, ...] = ()) -> list[str]:
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word in keep:
            break
        if word.startswith("-") and len(word) > 1:
            at += 2 if word in _WITH_VALUE and not keep else 1
        elif skip:
            skip -= 1
            at += 1
        elif is_assignment(word) or word.isdigit():
            at += 1
        else:
            break
    return words[at:]


def _after_flag(words: list[str], letter: str) -> tuple[list[str], str]:
    """For a shell: the text of `-c`, else the script it runs."""
    for at, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and letter in word[1:]:
            return [], words[at + 1] if at + 1 < len(words) else ""
        if word == "--command":
            return [], words[at + 1] if at + 1 < len(words) else ""
        before = words[at - 1]
        if not word.startswith(("-", "+")) and not (before[0] in "-+" and before[-1] in "oO"):
            return words[at:], ""
    return [], ""


def _after_subcommand(words: list[str], names: tuple[str, ...]) -> list[str] | None:
    for at, word in enumerate(words[1:4], 1):
        if word in names:
            rest = _past_options(words[at + 1 :])
            # `uv run -m pytest` and `pdm run -m pytest` run the module
            if "-m" in words[at + 1 : at + 3] and rest and "-m" not in rest:
                rest = ["python", "-m", *rest]
            # A script of the project, not the shell's own `test`.
            return ["run-script", *rest] if rest and rest[0].startswith("test") else rest
        if not word.startswith("-"):
            return None
    return None


def _value_of(words: list[str], names: tuple[str, ...]) -> str:
    for at, word in enumerate(words[:-1]):
        if word in names:
            return words[at + 1]
    return ""
