"""The syntax of the commands about the sandbox."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser

from ralph.cli.arguments import add_config, add_json, add_project, add_run, add_trust, add_workspace


def sandbox(parser: ArgumentParser) -> None:
    """Show the sandbox that a run would use and why, what each kind of sandbox needs
    here, which hosts can be reached from inside, the limits, and where the agent works.

    Each kind is started once to see whether it works.

    examples:
      ralph sandbox status           the sandbox of the plan here
      ralph sandbox status --json    for scripts
      ralph sandbox --sandbox=podman    what a run with this option would use
    """
    _options(parser)
    add_workspace(parser, json=True)


def sandbox_shell(parser: ArgumentParser) -> None:
    """Open a terminal in the sandbox: the files, home folder, variables, hosts and limits
    that an agent has, without its login.

    It is in the clone of your last commit, or in the clone with unfinished work if
    there is one. The next session of an agent starts from commits, so do not work here.

    examples:
      ralph sandbox shell
      ralph sandbox shell --sandbox=podman    in another kind of sandbox
      ralph sandbox shell --allow-hosts pypi  with more hosts than the settings allow
    """
    _options(parser)
    add_trust(parser)
    add_workspace(parser)


def sandbox_exec(parser: ArgumentParser) -> None:
    """Run one command in the sandbox, with the streams of this one. The exit code is the
    command's.

    examples:
      ralph sandbox exec -- npm ci                 try whether the agent can do this
      ralph sandbox exec --check -- pytest -q      as a check: without the agent's hosts
      ralph sandbox exec -- sh -c 'ls -la ~'       what is in the home folder inside
    """
    parser.add_argument("--check", action="store_true", help="as a check runs: only the hosts of sandbox.allow_hosts")
    _options(parser)
    add_trust(parser)
    add_workspace(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command and its arguments")


def sandbox_log(parser: ArgumentParser) -> None:
    """Show which hosts the agents and checks of a run reached, and which were refused,
    with the command that allows each of them.

    The word `shell` in place of a run stands for the last `ralph sandbox shell` or
    `exec`.

    examples:
      ralph sandbox log                       of the last run
      ralph sandbox log 20260115-093012       of another one
      ralph sandbox log --all                 every decision, one by one
      ralph sandbox log shell                 of the last `ralph sandbox shell` or `exec`
    """
    add_run(parser)
    parser.add_argument("--all", action="store_true", help="every decision, oldest first, instead of one line per host")
    add_config(parser)
    add_workspace(parser, json=True)


def sandbox_reset(parser: ArgumentParser) -> None:
    """Remove what the sandbox of this project keeps: the clones, the repository and home
    folder of the agents, and the record of its set-up. The next run makes new ones.

    Refuses while a run works, and while a clone has work that your checkout does not
    have. Runs, reports and plans stay.

    examples:
      ralph sandbox reset
      ralph sandbox reset --force    also with unmerged work, which stays on its branch
    """
    parser.add_argument(
        "--force", action="store_true", help="also if a clone has work; its commits stay on their branch"
    )
    add_project(parser)
    add_json(parser)


def sandbox_test(parser: ArgumentParser) -> None:
    """Try to escape from each kind of sandbox that works here, then do ordinary work in
    it, and print a table. Everything is tried for real, on files made for it.

    Exit code 0 if all escapes are refused and all work succeeds, 1 otherwise.

    examples:
      ralph sandbox test                    every kind that works here
      ralph sandbox test --backend bwrap    only this one
      ralph sandbox test --json             for scripts and CI
    """
    parser.add_argument("--backend", metavar="NAME", default="", help="only this kind: bwrap, srt, podman, docker, sbx")
    add_json(parser)


def _options(parser: ArgumentParser) -> None:
    from ralph.config.flags import add_options

    add_options(parser, ["sandbox.use", "sandbox.allow_hosts", "workspace"])
    add_config(parser)
