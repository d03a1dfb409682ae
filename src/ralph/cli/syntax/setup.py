"""The syntax of the commands that set up and inspect."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_config, add_json, add_project, add_trust, add_workspace


def config(parser: ArgumentParser) -> None:
    """Print every setting, or change one.

    Sources, later ones win: built-in defaults, the profile of the layout,
    ~/.ralph/config.yaml, .ralph/config.yaml, .ralph/configs/NAME (--config NAME),
    RALPH_* variables, flags.

    examples:
      ralph config show                     every setting
      ralph config --origin                 and where it was set
      ralph config get max_iterations
      ralph config set timeout 20m          in .ralph/config.yaml; keeps comments
    """
    parser.add_argument("--origin", action="store_true", help="show where each value was set")
    _reads(parser)


def config_get(parser: ArgumentParser) -> None:
    """Print one setting.

    examples:
      ralph config get timeout
      ralph config get timeout --origin
      ralph config get quality_checks --json
    """
    parser.add_argument("key", metavar="KEY")
    parser.add_argument("--origin", action="store_true", help="also print every source that sets it, the winner first")
    _reads(parser)


def config_set(parser: ArgumentParser) -> None:
    """Set a key in a config file.

    examples:
      ralph config set max_iterations 30
      ralph config set --user agent.model sonnet
      ralph config set quality_checks.unit "pytest -q"
      ralph config set --config default max_loops_per_task 10
      ralph config set checks '["pytest -q", "ruff check ."]'
      ralph config set checks '[{name: unit, command: pytest -q, timeout: 5m}]'
    """
    parser.add_argument("key", metavar="KEY")
    parser.add_argument("value", metavar="VALUE", help="as in YAML; text needs no quotes")
    _writes(parser)


def config_unset(parser: ArgumentParser) -> None:
    """Remove a key from a config file.

    examples:
      ralph config unset max_iterations
      ralph config unset --user agent.model
    """
    parser.add_argument("key", metavar="KEY")
    parser.set_defaults(value=None)
    _writes(parser)


def config_schema(_: ArgumentParser) -> None:
    """Print a JSON Schema of the config files, for an editor.

    examples:
      ralph config schema > .ralph/schema.json
    """


def _reads(parser: ArgumentParser) -> None:
    add_config(parser)
    add_workspace(parser, json=True)


def _writes(parser: ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="in ~/.ralph/config.yaml")
    where.add_argument("--config", metavar="NAME", help="in .ralph/configs/NAME")
    add_project(parser)


def config_migrate(parser: ArgumentParser) -> None:
    """After an upgrade: check that settings, plans and runs of earlier versions open, and
    change what must change. `ralph migrate` is the same.

    State is never converted: this version reads what earlier ones wrote. What changes
    is the path of Ralph in hooks that `ralph hooks install` added to a settings file.

    examples:
      ralph config migrate             here, and in your own settings
      ralph config migrate --check     change nothing; exit code 1 if something must change
    """
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if something must change")
    add_json(parser)
    add_project(parser)


def trust(parser: ArgumentParser) -> None:
    """Review and trust the commands of a workspace: checks, steps, the agent's command
    line, the verify commands of the plan, the hooks of .claude/settings.json.

    They may come from somebody else, so Ralph runs them only after you have seen
    them. Trust is stored outside the workspace, by content: when a command changes,
    Ralph asks again and shows the difference.

    examples:
      ralph trust              show the commands and ask
      ralph trust --show       only show them
      ralph trust -y           trust them without being asked
      ralph trust --revoke     forget what was trusted in this workspace
    """
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="show the commands and whether they are trusted")
    action.add_argument("--revoke", action="store_true", help="forget what was trusted in this workspace")
    action.add_argument("-y", "--yes", action="store_true", help="trust them without being asked")
    add_config(parser)
    add_workspace(parser, json=True)


def doctor(parser: ArgumentParser) -> None:
    """Check this machine and this workspace, and show how to fix what is wrong.

    Agent clients are only asked for their version, in an empty home and without
    network access. Exit code 78 if something would stop a run.

    examples:
      ralph doctor             every problem, with its fix
      ralph doctor --json      for scripts
    """
    add_project(parser)
    add_json(parser)


def doctor_preflight(parser: ArgumentParser) -> None:
    """Check everything a run needs: plan, settings, trust, agent, login, prompts,
    repository, disk. Nothing is started, and no model is called.

    Every problem is listed with its fix. Exit code 78 if one of them stops a run.
    `--checks` also runs the checks. `ralph doctor` checks the machine.

    examples:
      ralph doctor preflight             every problem, with its fix
      ralph doctor preflight --checks    also run the checks once
      ralph doctor preflight --agent command --agent-command my-agent    for a run with another agent
      ralph doctor preflight --json      for scripts
    """
    from ralph.config.flags import add_options

    parser.add_argument("--checks", action="store_true", help="also run the checks once")
    add_options(parser, ["agent.name", "agent.command", "agent.script"])
    add_config(parser)
    add_workspace(parser, json=True)


def doctor_notify(parser: ArgumentParser) -> None:
    """Test the notifications configured under `notify:`.

    Exit code 0 if every message was sent, 1 otherwise.

    examples:
      ralph doctor notify            send one message through each channel
      ralph doctor notify --json     the results, for scripts
    """
    add_config(parser)
    add_trust(parser)
    add_workspace(parser, json=True)


def config_paths(parser: ArgumentParser) -> None:
    """Print the files and folders Ralph uses: for the user, the workspace, its state and
    the plan.

    examples:
      ralph config paths              all of them
      ralph config paths --json       for scripts
    """
    add_workspace(parser, json=True)


def hooks(parser: ArgumentParser) -> None:
    """Show where Ralph's hooks for Claude Code are installed and whether they would act.

    `ralph run` passes its hooks to the client it starts, so nothing needs to be
    installed. Installed hooks do nothing in other clients, except with RALPH_LOOP=1:
    then the Stop hook ends an interactive client so that the shell loop around it
    starts a fresh one.

    examples:
      ralph hooks                      where the hooks are installed
      ralph hooks install              in .claude/settings.local.json of this project
      ralph hooks install --user       in ~/.claude/settings.json
      ralph hooks uninstall            restore the file as it was
    """
    _scope(parser, both=True)


def hooks_install(parser: ArgumentParser) -> None:
    """Add the hooks to a settings file.

    Only needed for interactive clients in a shell loop (RALPH_LOOP=1); `ralph run`
    brings its own hooks. Everything else in the file stays as it is, and a backup is
    kept beside it.

    examples:
      ralph hooks install
      ralph hooks install --user
    """
    _scope(parser)


def hooks_uninstall(parser: ArgumentParser) -> None:
    """Remove the hooks from a settings file.

    Restores the file byte for byte if it has not changed since; otherwise removes
    only Ralph's entries.

    examples:
      ralph hooks uninstall
    """
    _scope(parser)


def hooks_at_stop(_: ArgumentParser) -> None:
    """Print a JSON list of what keeps the agent from stopping. Used by the Stop hook.

    examples:
      ralph hooks at-stop
    """


def _scope(parser: ArgumentParser, *, both: bool = False) -> None:
    where = parser.add_mutually_exclusive_group()
    default = " (default: both)" if both else ""
    where.add_argument("--user", action="store_true", help=f"~/.claude/settings.json{default}")
    local = f".claude/settings.local.json of the project{default or ' (default)'}"
    where.add_argument("--project", action="store_true", help=local)
    add_project(parser)
    add_json(parser)


def hooks_plugin(parser: ArgumentParser) -> None:
    """Write a Claude Code plugin with Ralph's hooks and the commands /ralph-plan,
    /ralph-setup, /ralph-status and /ralph-review. Its folder is also a marketplace.

    `ralph run` does not need it. Files that Ralph did not write are never replaced.

    examples:
      ralph hooks plugin ~/ralph-plugin
      ralph hooks plugin ~/ralph-plugin --force    also replace edited files
    """
    parser.add_argument("folder", metavar="DIR", help="the folder; created if needed")
    parser.add_argument("--force", action="store_true", help="also replace files that were edited")
    add_json(parser)


def guard(parser: ArgumentParser) -> None:
    """Show whether an agent may run a command in this workspace, and why not. Nothing
    is run.

    Exit code 0 if the command is allowed, 1 if it is denied.

    examples:
      ralph guard 'rm -rf build'                    allowed: exit code 0
      ralph guard 'git push --force'                denied, with the reason: exit code 1
      ralph guard --cwd /srv/app 'rm -rf ../other'  denied, too: exit code 1
      ralph guard --categories                      list what is denied
      ralph guard --jsonl < commands.jsonl          one {"command": …, "cwd": …} per line
    """
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="a shell command, as one argument")
    parser.add_argument("--cwd", metavar="DIR", help="the folder it would run in (default: the current folder)")
    parser.add_argument("--jsonl", action="store_true", help="read commands from stdin, one JSON object per line")
    parser.add_argument("--categories", action="store_true", help="list the categories of denied commands")
    parser.add_argument("--defaults", action="store_true", help="ignore the settings of this workspace")
    add_project(parser)
    add_json(parser)


_TESTS = """
ralph detect tests --command 'pytest | tail -5' output.txt
ralph detect tests --command 'npm test' --exit-code 1 -
ralph detect tests --jsonl <runs.jsonl        # {"command": …, "output": …, "exit_code": …}
"""


_LIMIT = """
ralph detect limit error.txt
ralph detect limit --now 2026-11-15T09:49:00Z --tz Europe/Rome -
ralph detect limit --jsonl <errors.jsonl      # {"text": …, "agent": …, "now": …, "tz": …}
"""


def detect(parser: ArgumentParser) -> None:
    """Detect test results and usage limits in text, as the hooks and the loop do.

    Shows why a session was told that its tests failed, or why a run waits. With
    --jsonl, reads one JSON object per line from stdin and prints one for each.

    examples:
      npm test 2>&1 | ralph detect tests --command 'npm test' -
      ralph detect limit --tz Europe/Rome error.txt
      ralph detect tests --jsonl <runs.jsonl
    """
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    tests = what.add_parser(
        "tests",
        help="detect whether tests ran and failed",
        description="Detect whether tests ran and failed.",
        examples=_TESTS,
    )
    tests.add_argument("--command", metavar="TEXT", default="", help="the command that printed it")
    tests.add_argument("--exit-code", metavar="N", type=int, help="its exit code, if known")
    limit = what.add_parser(
        "limit",
        help="detect a usage limit and when it ends",
        description="Detect whether the final error of a client is a usage limit, and when it ends.",
        examples=_LIMIT,
    )
    limit.add_argument("--agent", metavar="NAME", default="", help="the client that printed it")
    limit.add_argument("--now", metavar="TIME", help="epoch or ISO 8601 (default: the clock)")
    limit.add_argument("--tz", metavar="ZONE", default="", help="the time zone, if the text has none (default: UTC)")
    for one in (tests, limit):
        one.add_argument("file", metavar="FILE", nargs="?", help="the text; - for stdin")
        one.add_argument("--jsonl", action="store_true", help="read and write one JSON object per line")
        add_json(one)


def help(parser: ArgumentParser) -> None:
    """List the commands, or explain one of them.

    examples:
      ralph help                 the commands of daily use
      ralph help --all           every command, grouped
      ralph help run             the same as `ralph run --help`
    """
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command to explain")
    parser.add_argument("-a", "--all", action="store_true", help="list every command, grouped")


def config_completion(parser: ArgumentParser) -> None:
    """Print a script that completes commands, options, values and story IDs.

    examples:
      eval "$(ralph config completion bash)"                          # in ~/.bashrc
      ralph config completion zsh > "${fpath[1]}/_ralph"              # once, in zsh
      ralph config completion fish > ~/.config/fish/completions/ralph.fish
      ralph config completion powershell >> $PROFILE                  # once, in PowerShell
    """
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "powershell"), help="your shell")


def config_man(parser: ArgumentParser) -> None:
    """Write the man pages, one for `ralph` and one for each command.

    A package of a Linux distribution, Homebrew and `pipx` bring them along. For other
    installations, write them to a folder that `man` searches.

    examples:
      ralph config man ~/.local/share/man/man1    then: man ralph-run
    """
    parser.add_argument("folder", metavar="DIR", help="the folder; created if needed")
