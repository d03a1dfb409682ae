"""Variables that programs obey: what they run, where they report, what they remember."""

from ralph.hooks.guard.marks import is_known
from ralph.hooks.guard.state import Shell
from ralph.hooks.guard.wordlist import one_of

_RUN = one_of(
    """
    PROMPT_COMMAND GIT_SSH_COMMAND GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_ASKPASS
    GIT_PROXY_COMMAND PAGER MANPAGER EDITOR VISUAL BROWSER SSH_ASKPASS LESSOPEN LESSCLOSE RSYNC_RSH GIT_SSH
    SUDO_ASKPASS
    """
)
"""Their value is eventually run as a command by some program."""
_HISTORY = frozenset(("HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL", "HISTIGNORE", "SAVEHIST"))
_OURS = ("RALPH_POLICY", "RALPH_NONCE", "RALPH_STATE_HOME", "CLAUDE_CODE_SIMPLE")


def judge_variable(shell: Shell, name: str, value: str) -> None:
    shown = [f"{name}={value}"]
    if name in _OURS:
        shell.deny("tampering", "This changes the variables that tie Ralph's hooks to their run", shown)
    elif name in _HISTORY:
        off = value in ("", "0", "/dev/null") or (name == "HISTIGNORE" and value == "*")
        if off:
            shell.deny("audit", "This disables the shell history", shown)
    elif name in _RUN and value and is_known(value):
        from ralph.hooks.guard.walk import run_text

        run_text(shell.fork(), value)
    elif name == "GIT_CONFIG_GLOBAL" and value == "/dev/null":
        return
    elif name in ("HUSKY", "HUSKY_SKIP_HOOKS") and value in ("0", "1") and (value == "0") == (name == "HUSKY"):
        shell.deny("tampering", "This disables the project's git hooks", shown)
    elif name.startswith("GIT_CONFIG_VALUE_") or name == "GIT_CONFIG_PARAMETERS":
        _configuration(shell, value, shown)
    elif name.startswith("BASH_FUNC_"):
        from ralph.hooks.guard.walk import run_text

        run_text(shell.fork(), f"imported {value}; imported")
    elif name == "BASH_ENV" or name == "ENV" or name == "ZDOTDIR":
        _startup(shell, value)


def judge_unset(shell: Shell, name: str) -> None:
    if name in _OURS:
        shell.deny("tampering", "This changes the variables that tie Ralph's hooks to their run", ["unset", name])
    if name in _HISTORY:
        shell.deny("audit", "This disables the shell history", ["unset", name])


def _configuration(shell: Shell, value: str, shown: list[str]) -> None:
    from ralph.hooks.guard.walk import run_text

    if "hookspath" in value.lower():
        shell.deny("tampering", "This disables git's hooks", shown)
    if "!" in value:
        run_text(shell.fork(), value.partition("!")[2].strip("'"))


def _startup(shell: Shell, path: str) -> None:
    """A file that the next shell runs first."""
    from ralph.hooks.guard.acts import contents
    from ralph.hooks.guard.programs.shells import judge_script

    if ((text := contents(shell, path)) and "/" in path) or is_known(text):
        judge_script(shell.fork(), text, [f"BASH_ENV={path}"])
