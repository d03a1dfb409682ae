"""The syntax of `ralph stream`."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_json, add_project, add_trust

_NAME = "the plan: its name, or the number of a PRD"


def stream(parser: ArgumentParser) -> None:
    """Run several plans at once. A stream is one plan in its own git worktree,
    .ralph/worktrees/NAME, on its own branch, ralph/NAME.

    Without an action, lists the streams.

    examples:
      ralph stream new 1              create a stream for .ralph/PRD-1/
      ralph stream build 1 --detach   run it in the background
      ralph stream                    see how all of them are doing
      ralph stream merge 1            prove the merged tree, then merge
      ralph stream remove 1           clean up
    """
    stream_list(parser)


def stream_new(parser: ArgumentParser) -> None:
    """Create a stream for a plan: a worktree in .ralph/worktrees/NAME on branch
    ralph/NAME, from HEAD of the current branch.

    Uncommitted files of the plan (the plan, requirements, prompt, settings) and
    installed dependencies are copied. Your other uncommitted changes are not.

    examples:
      ralph stream new 1              for .ralph/PRD-1/
      ralph stream new user-login     for .ralph/user-login/
    """
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help=f"{_NAME} (default: the only plan)")
    add_project(parser)
    add_json(parser)


def stream_list(parser: ArgumentParser) -> None:
    """List the streams: branch, state, finished stories, commits ahead of and behind
    the current branch, and how the last run ended.

    examples:
      ralph stream list
      ralph stream list --json        for scripts
    """
    add_project(parser)
    add_json(parser)


def stream_status(parser: ArgumentParser) -> None:
    """Show one stream in full, or all of them.

    examples:
      ralph stream status             all streams
      ralph stream status 1           the stream of PRD-1
      ralph stream status 1 --json    for scripts
    """
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help=f"{_NAME} (default: all)")
    add_project(parser)
    add_json(parser)


def stream_build(parser: ArgumentParser) -> None:
    """Run the plan of a stream in its worktree. Takes every option of `ralph run`.

    A run of the stream that was killed is recovered first.

    examples:
      ralph stream build 1                 until every story is done
      ralph stream build 1 --detach        in the background
      ralph stream build user-login -n 5   at most five iterations
    """
    from ralph.cli.syntax.run import run

    parser.add_argument("name", metavar="NAME", help=_NAME)
    run(parser)


def stream_stop(parser: ArgumentParser) -> None:
    """Stop the run of a stream after the current iteration, or now.

    examples:
      ralph stream stop 1             after the current iteration
      ralph stream stop 1 --now       at once
    """
    parser.add_argument("name", metavar="NAME", help=_NAME)
    parser.add_argument("--now", action="store_true", help="interrupt the current iteration")
    add_project(parser)
    add_json(parser)


def stream_merge(parser: ArgumentParser) -> None:
    """Merge a stream into the current branch, if the checks pass on the merged tree.

    Shows the commits, files and stories first, and asks. Your checkout is not touched
    before the checks have passed. With --all, finished streams and small ones go
    first, each is proven on top of the one before, and one that cannot be merged is
    skipped. For people: an agent cannot call this.

    examples:
      ralph stream merge 1            show, ask, prove, merge
      ralph stream merge 1 --yes      without asking
      ralph stream merge --all --yes  every stream with commits
    """
    which = parser.add_mutually_exclusive_group()
    which.add_argument("name", nargs="?", default="", metavar="NAME", help=f"{_NAME} (default: the only stream)")
    which.add_argument("--all", action="store_true", help="every stream that has commits to merge")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_trust(parser)
    add_project(parser)
    add_json(parser)


def stream_remove(parser: ArgumentParser) -> None:
    """Remove a stream: its worktree, branch and lock.

    Refuses if that would lose commits or uncommitted work. With --force everything is
    saved under refs/ralph/rescue/ first; `ralph rescue list` shows it.

    examples:
      ralph stream remove 1           after a merge
      ralph stream remove 1 --force   save its work in a rescue ref, and remove it
    """
    parser.add_argument("name", metavar="NAME", help=_NAME)
    parser.add_argument("--force", action="store_true", help="save unmerged work under refs/ralph/rescue/, then remove")
    add_project(parser)
    add_json(parser)
