"""The syntax of `ralph run` and of the commands for a run in progress."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_config, add_output, add_run, add_trust, add_workspace


def configure_orders(parser: ArgumentParser) -> None:
    parser.add_argument("--run", metavar="RUN", default="", help="a run's ID or a unique prefix of it")
    add_workspace(parser, json=True)


_COMMON = ("max_iterations", "parallel", "agent.model", "budget.run_usd", "max_run_time", "review.when")


_SETTINGS = {
    "limits": (
        "timeout idle_timeout max_loops_per_task circuit_breaker.on_stuck agent.budget_usd budget.run_tokens "
        "rate_limit_per_hour token_limit_per_hour limit_share on_limit max_allowed_iterations"
    ),
    "agent": (
        "agent.name agent.command agent.script prompt agent.allowed_tools agent.disallowed_tools permissions "
        "web allow_paths agent.fallback_model fallback routing.enabled"
    ),
    "sandbox": "sandbox.use workspace sandbox.allow_hosts on",
    "review": "review.cap review.on_cap review.on_stalemate review.agent review.model review.reviewers",
    "checks and git": "proof.minimum acceptance exam baseline tamper tests canary rollback push archive.on_complete",
}
"""Heading in `--help` → the settings that can be changed for one run."""


def run(parser: ArgumentParser) -> None:
    """Work through the plan: one agent session per iteration, judged by checks that
    Ralph runs itself.

    Accepted work is committed. Everything else is saved under refs/ralph/rescue/
    and rolled back. The run ends when every story is done and the checks pass on
    the final tree, or tells you why it stopped.

    examples:
      ralph run                          until every story is done
      ralph run -n 5 --model sonnet      at most five iterations, with this model
      ralph run --parallel 4             four stories at a time, merged one by one
      ralph run --once --verbose         one iteration, and show what the agent does
      ralph run --acceptance hidden      another session writes tests first, unseen by the one that implements
      ralph run --exam                   another session writes end-to-end tests at the end
      ralph run --max-cost 10            stop before it costs more than $10
      ralph run --dry-run                show story, prompt, command and checks only
    """
    from ralph.config.flags import add_options

    parser.add_argument("--dry-run", action="store_true", help="show story, prompt, command and checks; change nothing")
    parser.add_argument(
        "--story", dest="stories", action="append", default=[], metavar="ID", help="only this story; repeatable"
    )
    parser.add_argument("--once", action="store_true", help="run one iteration")
    add_options(parser, _COMMON)
    parser.add_argument("--detach", action="store_true", help="run in the background, without a terminal")
    parser.add_argument("--worktree", action="store_true", help="work in a separate git worktree, on its own branch")
    add_workspace(parser)
    groups = {title: parser.add_argument_group(title) for title in ("before the run", *_SETTINGS, "output")}
    for title, keys in _SETTINGS.items():
        add_options(groups[title], keys.split())
    before = groups["before the run"]
    add_trust(before)
    before.add_argument("--stash", action="store_true", help="stash uncommitted changes first")
    before.add_argument("--reset-circuit", action="store_true", help="retry failed stories and forget usage limits")
    before.add_argument(
        "--allow-broken-checks", action="store_true", help="start although a check cannot run or fails before any work"
    )
    add_config(before)
    add_output(groups["output"])


def build(parser: ArgumentParser) -> None:
    """Run one numbered PRD, .ralph/PRD-N/. Takes every option of `ralph run`.

    Also reads the variables MAX_ITERATIONS, MAX_ALLOWED_ITERATIONS, PRD_NUMBER and
    TIMEOUT_AGENT (in seconds).

    examples:
      ralph build 10 --prd 1             ten iterations on .ralph/PRD-1/
      ralph build --prd 2 --dry-run      show what would happen
      MAX_ITERATIONS=5 PRD_NUMBER=3 ralph build
    """
    parser.add_argument("iterations", nargs="?", metavar="N", help="the maximum number of iterations")
    run(parser)


def watch(parser: ArgumentParser) -> None:
    """Show a run live, from any terminal. Read-only: Ctrl-C leaves the run alone.

    Without RUN: the current run of this workspace or one of its worktrees, or the
    last one. A run that has ended is shown with its summary; one that was killed,
    with what the next run will do. If stdout is not a terminal, it prints lines.

    examples:
      ralph watch                    the current run, or the last one
      ralph watch 20260115-0930      a run by its ID or a unique prefix of it
      ralph watch -v                 also what the agent says and does, as lines
      ralph watch | tee run.txt      as lines
    """
    add_run(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="also print what the agent says and does")
    parser.add_argument("--plain", action="store_true", help="print lines instead of the live view")
    add_workspace(parser)


def pause(parser: ArgumentParser) -> None:
    """Pause a run after the current iteration.

    The run keeps waiting; edit the plan meanwhile if you like. `ralph resume`
    continues it. Ctrl-\\ in the terminal of the run does the same.

    examples:
      ralph pause                  the run of this workspace
      ralph pause -f user-login    the run of one of several plans
    """
    configure_orders(parser)


def resume(parser: ArgumentParser) -> None:
    """Resume a paused run. It reads the plan again before it continues.

    examples:
      ralph resume                 the run of this workspace
      ralph resume --run 20260115-0930
    """
    configure_orders(parser)


def stop(parser: ArgumentParser) -> None:
    """Stop a run after the current iteration, or now.

    With --now the agent is interrupted as by Ctrl-C: its work is saved under
    refs/ralph/rescue/ and rolled back, and the attempt does not count. Repeat it to
    kill an agent that does not react.

    examples:
      ralph stop                   after the current iteration
      ralph stop --now             at once
    """
    parser.add_argument("--now", action="store_true", help="interrupt the current iteration")
    configure_orders(parser)


def retry(parser: ArgumentParser) -> None:
    """Give failed stories another chance, with a full set of attempts. The prompt still reports the last failure.

    A run in progress retries them before its next iteration. The next run also retries a failed story if the story, the
    checks or the settings have changed.

    examples:
      ralph retry US-003            one story
      ralph retry --all             every failed story
    """
    parser.add_argument("ids", nargs="*", metavar="ID", help="the stories (default: the only failed one)")
    parser.add_argument("-a", "--all", action="store_true", help="every failed story")
    add_workspace(parser, json=True)


def answer(parser: ArgumentParser) -> None:
    """Answer a question of the agent, or list the open questions.

    The story that asked is open again, and the answer is in the prompts of its next sessions. `-` instead of a story
    answers for all stories and removes .ralph/WAITING; `-` instead of the answer reads it from stdin.

    examples:
      ralph answer                                    list the open questions
      ralph answer US-003 "Use PostgreSQL; the password is in the vault"
      ralph answer US-003 - < decision.md             read the answer from stdin
      ralph answer - "The design is fine, continue"   for all stories
    """
    parser.add_argument("story", nargs="?", metavar="STORY", help="the story that asked, or - for all stories")
    parser.add_argument("answer", nargs="?", metavar="ANSWER", help="the answer, or - to read it from stdin")
    add_workspace(parser, json=True)


def note(parser: ArgumentParser) -> None:
    """Leave a note for the next session. It appears in the prompt of one iteration.

    Use `ralph answer` for something that every later attempt must know.

    examples:
      ralph note "Use the date library that is already there"
      ralph note --story US-003 "The fixture is in tests/data"
    """
    parser.add_argument("text", metavar="TEXT", help="the note")
    parser.add_argument("--story", metavar="ID", default="", help="for the next iteration on this story")
    parser.add_argument("--run", metavar="RUN", default="", help="for this run, if several are in progress")
    add_workspace(parser)
