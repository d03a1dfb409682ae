"""Print a script that completes commands, options, values and story IDs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.output import say_raw
from ralph.core.registry import Registry

EXAMPLES = """
eval "$(ralph completion bash)"                          # in ~/.bashrc
ralph completion zsh > "${fpath[1]}/_ralph"              # once, in zsh
ralph completion fish > ~/.config/fish/completions/ralph.fish
"""

SHELLS = Registry(
    "shell",
    {"bash": "ralph.cli.shells.bash", "zsh": "ralph.cli.shells.zsh", "fish": "ralph.cli.shells.fish"},
)


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS.names(), help="your shell")


def run(args: Namespace) -> int:
    from ralph.cli.grammar import read_all  # imports every command, so only when it is needed

    say_raw(SHELLS.get(args.shell).script(read_all()).rstrip("\n"))
    return 0
