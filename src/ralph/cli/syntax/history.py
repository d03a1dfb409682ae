"""The syntax of the commands that show what happened."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_config, add_run, add_workspace


def status(parser: ArgumentParser) -> None:
    """Show the stories of a plan, their states, the progress and the last run.

    examples:
      ralph status                 the plan of this workspace
      ralph status -f user-login   one of several plans
      ralph status --json          for scripts
    """
    parser.add_argument("-a", "--all", action="store_true", help="list every story of a long plan")
    add_workspace(parser, json=True)


def report(parser: ArgumentParser) -> None:
    """Show what a run did. Without RUN: the current run, or the last one.

    Shows which stories are done, how well each is proven, which failed or are
    blocked and why, questions for you, cost and time, the commits and diffstat of
    each story, what to look at first, and rejected attempts. Computed from the
    journal and git.

    examples:
      ralph report                       the current run, or the last one
      ralph report 20260115-0930         a run by its ID or a unique prefix of it
      ralph report --html report.html    one self-contained page
      ralph report --markdown -          to stdout, for a pull request
    """
    add_run(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", metavar="FILE", help="write an HTML page; - for stdout")
    form.add_argument("--markdown", metavar="FILE", help="write Markdown; - for stdout")
    form.add_argument("--json", action="store_true", help="print JSON")
    add_workspace(parser)


def pr(parser: ArgumentParser) -> None:
    """Open a pull request on GitHub with the report of a run as its text. Without RUN:
    the last run.

    Needs `gh`, logged in, and the branch of the run on the remote: with --push, or
    after asking, Ralph pushes it, never with force. An agent cannot do this: the
    command refuses inside a run, and the guard denies it.

    examples:
      ralph pr --dry-run            print title and text; change nothing
      ralph pr --push               push the branch of the run, then open it
      ralph pr --base develop --draft
      ralph pr --comment 12         add the report to pull request 12 instead
    """
    add_run(parser)
    parser.add_argument("--base", default="", metavar="BRANCH", help="merge into this one (default: the main branch)")
    parser.add_argument("--remote", default="", metavar="NAME", help="the remote (default: where git would push)")
    parser.add_argument("--title", default="", metavar="TEXT", help="its title (default: from the stories)")
    parser.add_argument("--draft", action="store_true", help="open it as a draft")
    parser.add_argument("--push", action="store_true", help="push the branch without asking, if the remote lacks it")
    parser.add_argument(
        "--comment", default="", metavar="NUMBER", help="comment on this pull request instead (number, branch or URL)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent; start nothing")
    add_workspace(parser, json=True)


def record(parser: ArgumentParser) -> None:
    """Make an animated picture of a run, to show it to others. Without RUN: the current
    run, or the last one that had an iteration.

    The picture shows what a terminal shows during the run, with hours squeezed into
    seconds. It is computed from the journal, so it also works for a run that is under
    way, was killed, or ran on another machine: name its `events.jsonl`.

    An SVG moves by itself on web pages and in a README, in light and dark. A cast is
    for `asciinema play` and its web player. A GIF needs agg, or rsvg-convert and
    ImageMagick.

    examples:
      ralph record --svg run.svg                    the current run, or the last one with an iteration
      ralph record 20260115-0930 --gif run.gif      a run by its ID or a unique prefix of it
      ralph record --cast run.cast --seconds 60     slower
      ralph record events.jsonl --svg -             a copied journal; to stdout
    """
    parser.add_argument(
        "run",
        nargs="?",
        default="",
        metavar="RUN",
        help="a run's ID or a unique prefix of it, or the path of a journal",
    )
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--svg", metavar="FILE", help="write an animated SVG; - for stdout")
    form.add_argument("--cast", metavar="FILE", help="write an asciicast (version 2); - for stdout")
    form.add_argument("--gif", metavar="FILE", help="write a GIF; - for stdout")
    parser.add_argument("--seconds", type=int, default=20, metavar="N", help="the most it may take (default: 20)")
    parser.add_argument("--columns", type=int, default=100, metavar="N", help="its width (default: 100)")
    parser.add_argument("--rows", type=int, default=25, metavar="N", help="its height (default: 25)")
    parser.add_argument(
        "--theme", choices=("auto", "light", "dark"), default="auto", help="its colours (default: auto, the viewer's)"
    )
    add_workspace(parser)


def log(parser: ArgumentParser) -> None:
    """Show the events of a run, from its journal. Without RUN: the last run. With the ID
    of a story: its iterations, in all runs.

    examples:
      ralph log                      the last run
      ralph log 20260115-0930        a run by its ID or a unique prefix of it
      ralph log US-004               the iterations of a story, in all runs
      ralph log --story US-004       its iterations, in the last run
      ralph log --worker 2           what worker 2 did, in a run with several workers
      ralph log --follow             until the run ends
      ralph log --agent              the transcript of the last session
      ralph log --agent 3            the transcript of iteration 3
      ralph log --json | jq .event   every record, as JSON
      ralph log --check              the full output of the last failing check
      ralph log --check pytest       the last failing check with this in its name
    """
    parser.add_argument(
        "run", nargs="?", default="", metavar="RUN|STORY", help="a run's ID or a unique prefix of it, or a story's ID"
    )
    parser.add_argument("-F", "--follow", action="store_true", help="continue until the run ends")
    parser.add_argument("-v", "--verbose", action="store_true", help="also show what the agent did")
    parser.add_argument("--worker", type=int, metavar="K", help="only the iterations of this worker, and its proofs")
    parser.add_argument("--story", metavar="ID", help="only the iterations of this story, in one run")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--agent", nargs="?", const="", metavar="ITERATION", help="the transcript of a session (default: the last one)"
    )
    what.add_argument("--check", nargs="?", const="", metavar="NAME", help="the output of the last failing check")
    add_workspace(parser)
    parser.add_argument("--json", action="store_true", help="print the records, one JSON object per line")


def ui(parser: ArgumentParser) -> None:
    """Show a run on the whole terminal: stories, what the agent does, the diff, checks,
    reviews, time and cost; and act on it with keys. Without RUN: the run under way,
    or the last one that had an iteration. Needs the extra `tui`.

    The keys are at the bottom, and `?` explains them. It also edits stories and plans
    with an agent, so it opens on a plan that has no run yet, too.

    examples:
      ralph ui                                      the run under way, or the last one with an iteration
      ralph ui 20260115-0930                        a run by its ID or a unique prefix of it
      ralph ui events.jsonl                         a copied journal
      ralph ui --attach http://127.0.0.1:8750       what `ralph serve` shows; RALPH_TOKEN is its token
    """
    parser.add_argument(
        "run",
        nargs="?",
        default="",
        metavar="RUN",
        help="a run's ID or a unique prefix of it, or the path of a journal",
    )
    parser.add_argument("--attach", metavar="URL", help="show a run of another machine, through its `ralph serve`")
    add_workspace(parser)


def serve(parser: ArgumentParser) -> None:
    """Show the runs of this machine in a browser, and act on them. Needs the extra `web`.

    Prints an address with a token that is new with every start; anyone with it can
    read everything and control the runs. Only this machine can reach the server,
    unless --allow-remote is given. `/metrics` is for Prometheus.

    examples:
      ralph serve                                on port 8750, or the next free one
      ralph serve --read-only                    nobody can act on a run there
      ralph serve --token-file ~/ralph.token     for Prometheus and scripts
      ssh -L 8750:127.0.0.1:8750 build-machine   reach it from another machine
    """
    parser.add_argument("--port", type=_port, metavar="N", help="0: any free one (default: 8750, or the next free one)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--read-only", action="store_true", help="only show the runs")
    parser.add_argument("--allow-remote", action="store_true", help="other machines may reach the server")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which the server is reached, too",
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="write the token to a file only you can read, while the server runs"
    )
    parser.add_argument("--json", action="store_true", help="print the address as one line of JSON")


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


def explain(parser: ArgumentParser) -> None:
    """Explain why a run ended and what to do next. Without RUN: the last run.

    `ralph explain grades` prints what the grades of proof mean, and
    `ralph explain transitions` which state changes of a story are allowed, for
    people and for each kind of session.

    examples:
      ralph explain                  the last run
      ralph explain 20260115-0930    a run by a unique prefix of its ID
      ralph explain grades           what proven, witnessed, reviewed and unproven mean
      ralph explain transitions      the allowed state changes
    """
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        metavar="RUN",
        help="a run's ID or a unique prefix of it, or a topic: `grades`, `transitions`",
    )
    add_workspace(parser, json=True)


def explain_circuit(parser: ArgumentParser) -> None:
    """Show the circuit breakers of a run, of its stories and of its steps, and why one
    tripped.

    The next run starts with every breaker closed. `ralph run --reset-circuit` or
    `ralph task reopen ID` retries stories that were set aside.

    examples:
      ralph explain circuit                 the current run, or the last one
      ralph explain circuit 20260115-0930   a run by a unique prefix of its ID
      ralph explain circuit --json          for scripts
    """
    add_run(parser)
    add_workspace(parser, json=True)


def explain_route(parser: ArgumentParser) -> None:
    """Show which agent and model would work on a story, and the fallbacks.

    With routing on, the model depends on how hard the story looks: its text, its
    criteria, its failed attempts. `-m`, or a model set for a step, overrides that.
    `fallback:` lists what to use when the first choice hits a usage limit, has
    spent its budget or keeps failing.

    examples:
      ralph explain route                   for the next story
      ralph explain route US-003            for this story
      ralph explain route US-003 --routing  with routing switched on
    """
    from ralph.config.flags import add_options

    parser.add_argument("story", nargs="?", metavar="STORY", help="the ID of the story (default: the next one)")
    add_config(parser)
    add_options(parser, ["agent.name", "agent.model", "routing.enabled", "fallback"])
    add_workspace(parser, json=True)


def explain_prompt(parser: ArgumentParser) -> None:
    """Print the prompt of the next session exactly as the agent would get it, with an
    estimate of its tokens.

    examples:
      ralph explain prompt                           for the next story
      ralph explain prompt --story US-003            for this story
      ralph explain prompt --mode review --json      for a reviewer, with the system prompt
    """
    from ralph.config.flags import add_options
    from ralph.core.plan import Mode

    parser.add_argument("--story", metavar="ID", help="the story (default: the next one)")
    modes = [mode.value for mode in Mode]
    parser.add_argument("--mode", choices=modes, help="the kind of session (default: what the story needs next)")
    add_config(parser)
    add_options(parser, ["prompt"])
    add_workspace(parser, json=True)


def explain_schedule(parser: ArgumentParser) -> None:
    """Show which stories a run with several workers would start together, which it
    would hold, and why.

    Stories that will probably change the same files are not started together. What a
    story changes is taken from its `touches`, from paths in its text and from earlier
    attempts. Also shows the last decision of the last run, if that had several
    workers.

    examples:
      ralph explain schedule                with the setting `parallel`, or 4 workers
      ralph explain schedule --parallel 8   with 8 workers
      ralph explain schedule --json         for scripts, with the areas of all stories
    """
    from ralph.config.flags import add_options

    add_config(parser)
    add_options(parser, ["parallel"])
    add_workspace(parser, json=True)


def runs(parser: ArgumentParser) -> None:
    """List the runs of this workspace, newest first, and how each of them ended.

    examples:
      ralph runs                     the last 20
      ralph runs -f user-login -n 5  the last five of one plan
      ralph runs --json              for scripts
    """
    parser.add_argument("-n", "--number", type=int, default=20, metavar="N", help="how many runs (default: 20)")
    add_workspace(parser, json=True)


def runs_cost(parser: ArgumentParser) -> None:
    """Show what the runs of this workspace cost in money and tokens, and what the rest
    of the plan may take.

    `~` marks a cost that was estimated from list prices, `≤` an upper limit reserved
    for a session that never reported its cost. An unknown cost is shown as unknown,
    not as zero.

    examples:
      ralph runs cost                       totals, today, and what is left of the budgets
      ralph runs cost --by story            per story
      ralph runs cost --receipts            per iteration: tokens, cost, outcome
      ralph runs cost --run 20260115-0930   the iterations of one run
      ralph runs cost --forecast            what the rest of the plan may take
    """
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--by", choices=("story", "agent", "model", "day", "run"), help="group by")
    shown.add_argument("--receipts", action="store_true", help="one line per iteration")
    shown.add_argument("--forecast", action="store_true", help="forecast the rest of the plan")
    shown.add_argument("--reset", action="store_true", help="reset the budgets of the workspace and its stories")
    parser.add_argument(
        "--run", metavar="RUN", default="", help="only this run (shows its receipts unless --by is given)"
    )
    add_workspace(parser, json=True)


def runs_stats(parser: ArgumentParser) -> None:
    """Show statistics of this workspace: attempts, verdicts, reviews, review findings
    and the cost of reviews.

    A story that took several runs counts once.

    examples:
      ralph runs stats                          all runs of this workspace
      ralph runs stats --run 20260115-0930      one run, by a unique prefix of its ID
      ralph runs stats --json                   for scripts
    """
    parser.add_argument("--run", default="", metavar="RUN", help="a run's ID or a unique prefix of it (default: all)")
    add_workspace(parser, json=True)


def runs_replay(parser: ArgumentParser) -> None:
    """Replay the decisions of a recorded run and list those that would differ today.

    The same journal gives the same decisions, unless Ralph itself has changed.

    examples:
      ralph runs replay                 the last run
      ralph runs replay 20260115-0930   a run by a unique prefix of its ID
    """
    add_run(parser)
    add_workspace(parser, json=True)


def runs_trace(parser: ArgumentParser) -> None:
    """Send the trace of a recorded run to an OpenTelemetry receiver, by OTLP over HTTP.

    A run sends its trace itself if OTEL_EXPORTER_OTLP_ENDPOINT is set when it starts.
    This sends it afterwards, or again: the IDs are the same every time. Headers, the
    timeout and the rest come from the standard OTEL_* variables.

    examples:
      ralph runs trace                                   the last run
      ralph runs trace --endpoint http://localhost:4318  to this receiver
      ralph runs trace 20260115-0930 --json              print its spans instead
    """
    add_run(parser)
    parser.add_argument(
        "--endpoint",
        default="",
        metavar="URL",
        help="the receiver's address for OTLP over HTTP (default: OTEL_EXPORTER_OTLP_ENDPOINT)",
    )
    add_workspace(parser, json=True)
