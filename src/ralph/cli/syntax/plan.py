"""The syntax of the commands that plan the work."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from ralph.cli.arguments import add_action, add_json, add_new_plan, add_project, add_workspace

FAILING = {
    "no-worse": "use it, but do not reject work for today's failures (baseline: no-worse)",
    "fix-first": "use it, and make fixing it story 1",
    "off": "leave it out, as a comment in .ralph/config.yaml",
}
MISSING = {
    "off": "leave it out, as a comment in .ralph/config.yaml",
    "keep": "use it; install what is missing before `ralph run`",
}
PERMISSIONS = {
    "guard": "edit inside the project and run commands that Ralph's guard allows",
    "skip": "everything, without asking; only for a container or a sandbox",
}


def add_planning_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("planner")
    group.add_argument(
        "-m",
        "--model",
        dest="setting:planning.model",
        default=argparse.SUPPRESS,
        metavar="MODEL",
        help="the model that plans [planning.model]",
    )
    group.add_argument(
        "--agent",
        dest="setting:planning.agent",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="the agent that plans [planning.agent]",
    )
    parser.add_argument("--no-input", action="store_true", help="ask nothing; write nothing if there are findings")
    parser.add_argument(
        "--answer", metavar="FILE", help="take stories from FILE, as `ralph plan --schema` describes them; no agent"
    )
    parser.add_argument("--resume-draft", action="store_true", help="resume the interrupted draft")
    parser.add_argument("--trust", action="store_true", help="trust the commands of the workspace and of the plan")


_CHECK_TIMEOUT = "2m"


def init(parser: ArgumentParser) -> None:
    """Start a plan in any layout: the plan, requirements, prompts, settings and .gitignore lines.

    On a terminal it asks a few questions; Enter accepts the default, and each
    question has a flag. Without a terminal, or with --no-input, it asks nothing.
    The project's test, lint and type-check commands are detected and run once: one
    that cannot run is left out, one that fails is used so that only new failures
    count. Existing files are kept. With --from, an agent derives the stories from
    written requirements, as `ralph plan` does.

    examples:
      ralph init user-login                 .ralph/user-login/ with tasks.json, the default layout
      ralph init --story "Log in by email" --criterion "POST /login answers 200" --commit
      ralph init --layout plan.md           .ralph/PRD-1/, or the next free number
      ralph init shop --new --layout steps  a new folder shop/ with a git repository
      ralph init --no-input --test-command "pytest -q"
      ralph init --no-input --failing-checks off --max-cost 20
      ralph init --from requirements.md --layout steps --no-input
      ralph init --examples                 only example files, no plan
    """
    from ralph.plans.registry import all_layouts

    layouts = "\n".join(f"  {known.NAME:<11} {known.TITLE}" for known in all_layouts())
    parser.description = f"{parser.description}\n\nlayouts:\n{layouts}"
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the feature, or the number of the PRD")
    parser.add_argument("--name", dest="named", default="", metavar="NAME", help="the same as NAME")
    parser.add_argument("--new", action="store_true", help="create the folder NAME with a git repository in it")
    parser.add_argument("--tdd", action="store_true", help="a prompt that asks for tests first (layout feature)")
    parser.add_argument("--examples", action="store_true", help="only write example files to .ralph/examples/")
    parser.add_argument("--force", action="store_true", help="write fresh files; keep the old ones as *.bak-…")
    add_json(parser)
    add_new_plan(parser)
    asked = parser.add_argument_group("answers to the questions")
    asked.add_argument("--no-input", action="store_true", help="ask nothing, use the defaults")
    asked.add_argument("--agent", metavar="NAME", help="the agent [agent.name] (one that is installed and logged in)")
    _yes_or_no(asked, "git-init", "create a git repository if there is none")
    asked.add_argument("--no-checks", action="store_true", help="do not detect the project's commands")
    asked.add_argument("--test-command", metavar="COMMAND", help="how the tests are run, instead of a detected command")
    _yes_or_no(asked, "run-checks", "run each check once")
    asked.add_argument(
        "--check-timeout", default=_CHECK_TIMEOUT, metavar="TIME", help=f"time limit of one check ({_CHECK_TIMEOUT})"
    )
    asked.add_argument("--failing-checks", choices=tuple(FAILING), help="how to treat one that fails now (no-worse)")
    asked.add_argument("--missing-checks", choices=tuple(MISSING), help="how to treat one that cannot run (off)")
    asked.add_argument("--permissions", choices=tuple(PERMISSIONS), help="what the agent may do (guard)")
    asked.add_argument("--max-cost", metavar="USD", help="maximum cost of one run [budget.run_usd] (no limit)")
    asked.add_argument("--story", metavar="TITLE", help="the first story")
    asked.add_argument("--criterion", action="append", metavar="TEXT", help="a criterion of that story; repeatable")
    asked.add_argument("--plan", action="store_true", help="write the stories with an agent, as `ralph plan` does")
    _yes_or_no(asked, "proof-files", "copy settings that git ignores, such as .env, to the checkout for proofs")
    _yes_or_no(asked, "fix-gitignore", "change a .gitignore that ignores .ralph/")
    _yes_or_no(asked, "commit", "commit the new files and nothing else")
    planned = parser.add_argument_group("with an agent")
    planned.add_argument("--from", dest="source", metavar="FILE", help="requirements to derive the stories from")
    planned.add_argument("-m", "--model", metavar="MODEL", help="the model that plans [planning.model]")
    planned.add_argument("--trust", action="store_true", help="trust the commands of the workspace and of the plan")


def _yes_or_no(group: argparse._ArgumentGroup, name: str, meaning: str) -> None:
    group.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None, help=meaning)


def plan(parser: ArgumentParser) -> None:
    """Plan with an agent: it reads the code, asks questions, and proposes requirements
    and stories.

    From an idea it asks as much as it needs. From requirements (a file, stdin, or
    the page in this workspace) it derives the stories and asks only where they are
    ambiguous. It cannot change files. You accept the plan, edit it, have it revised,
    or drop it; until then only a draft is stored.

    examples:
      ralph plan "a command line to-do list"       from an idea
      ralph plan requirements.md --layout steps    from written requirements
      ralph plan                                   from the requirements here
      ralph plan requirements.md --no-input        in CI: exit code 65 on findings
      ralph plan --answer plan.json                a plan written elsewhere
    """
    parser.add_argument("what", nargs="?", metavar="IDEA|FILE", help="an idea in words, a file with requirements, or -")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema for --answer")
    add_json(parser)
    add_planning_options(parser)
    add_new_plan(parser)
    parser.set_defaults(command="plan")


def add(parser: ArgumentParser) -> None:
    """Turn a request into new stories: an agent reads the code and proposes them.

    During a run, the stories are taken in before the next iteration. In the layout
    `steps`, finished tasks move to .ralph/prd_archive.json first.

    examples:
      ralph add "export orders as CSV"
      ralph add work.md --no-input              in CI: no questions
      ralph add - < request.md                  from stdin
      ralph add "dark mode" -f user-settings    to the plan of this feature
      ralph add --answer stories.json           stories written elsewhere, no agent
    """
    parser.add_argument("what", nargs="?", metavar="TEXT|FILE", help="the request in words, a file, or - for stdin")
    parser.add_argument("--keep-done", action="store_true", help="keep finished tasks in the plan")
    add_json(parser)
    add_planning_options(parser)
    add_workspace(parser)
    parser.set_defaults(command="add")


def fix(parser: ArgumentParser) -> None:
    """Turn a bug report into one story with a check that fails now.

    An agent looks for the cause and proposes a story and a command that shows the
    bug. The command is run at once: if it passes, it proves nothing and the story is
    rejected. The story becomes the first of the plan.

    examples:
      ralph fix "the total is wrong when the cart is empty"
      ralph fix report.md --no-input --trust    in CI: run the command unseen
      ralph fix --answer story.json             a story written elsewhere, no agent
    """
    parser.add_argument("what", nargs="?", metavar="TEXT|FILE", help="the bug report in words, a file, or - for stdin")
    add_json(parser)
    add_planning_options(parser)
    add_workspace(parser)
    parser.set_defaults(command="fix")


def task(parser: ArgumentParser) -> None:
    """List, show, add and edit stories, in any layout. Only the bytes that change are
    written.

    Inside a run, an agent that calls `ralph task done` makes a claim; with review
    on, it submits the story for review.

    examples:
      ralph task list --state todo
      ralph task show US-003
      ralph task add "Log in with a passkey" --criterion "POST /passkey answers 201" --after US-003
      ralph task done US-003 --note "passkeys work, see tests/test_passkey.py"
      ralph task set US-004 --state blocked --why "waits for the API key"
    """
    from ralph.core.plan import State

    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    states = [state.value for state in State]

    one = _command(commands, "list", "list the stories", "ralph task list --state failed")
    one.add_argument("--state", choices=states, help="only stories in this state")
    one.add_argument("--ids", action="store_true", help="print only the IDs")

    one = _command(commands, "show", "show one story", "ralph task show US-001")
    one.add_argument("id", metavar="ID")

    _command(commands, "next", "show the story a run would take next", "ralph task next --json")

    one = _command(commands, "add", "add a story", 'ralph task add "Log in" --criterion "GET / is 200"')
    one.add_argument("title", metavar="TITLE")
    one.add_argument("--id", dest="new_id", metavar="ID", help="its ID (default: the next free one)")
    one.add_argument("--after", metavar="ID", help="insert it after this story (default: at the end)")
    _fields(one)

    one = _command(commands, "set", "edit a story", "ralph task set US-001 --priority 1 --state blocked")
    one.add_argument("id", metavar="ID")
    one.add_argument("--title", metavar="TEXT", help="a new title")
    one.add_argument("--state", choices=states, help="a new state")
    one.add_argument("--why", metavar="TEXT", help="the reason for the states failed and blocked")
    one.add_argument("--notes", metavar="TEXT", help="replace its notes")
    one.add_argument("--force", action="store_true", help="even if it depends on open stories")
    _fields(one)

    one = _command(commands, "done", "mark a story done", 'ralph task done US-001 --note "what was done"')
    one.add_argument("id", metavar="ID")
    one.add_argument("--note", metavar="TEXT", default="", help="what was done, added to the story's notes")
    one.add_argument("--force", action="store_true", help="even if it depends on open stories")

    one = _command(commands, "reopen", "reopen a story that is done, failed or blocked", "ralph task reopen US-001")
    one.add_argument("id", metavar="ID")

    one = _command(
        commands, "skip", "set a story aside; runs continue with the others", 'ralph task skip US-004 "not needed"'
    )
    one.add_argument("id", metavar="ID")
    one.add_argument("reason", nargs="?", metavar="REASON", help="why, for the summary of the run")

    one = _command(
        commands,
        "finding",
        "list the findings of a story's reviews, reject or confirm one",
        'ralph task finding US-003 F2 --reject "the caller checks it"',
    )
    one.add_argument("id", metavar="STORY")
    one.add_argument("finding", nargs="?", metavar="FINDING", help="its ID, such as F2 (default: list all)")
    fate = one.add_mutually_exclusive_group()
    fate.add_argument("--reject", metavar="REASON", help="it is no problem: it comes back only with new evidence")
    fate.add_argument(
        "--confirm", nargs="?", const="", metavar="REASON", help="it is a problem: it is open, and no fix can reject it"
    )

    one = _command(commands, "remove", "remove a story from the plan", "ralph task remove US-004")
    one.add_argument("id", metavar="ID")

    one = _command(commands, "split", "split a story into parts", 'ralph task split US-003 "The API" "The page"')
    one.add_argument("id", metavar="ID")
    one.add_argument("titles", nargs="+", metavar="TITLE", help="the title of each part, at least two")

    one = _command(commands, "move", "move a story", "ralph task move US-005 --before US-002")
    one.add_argument("id", metavar="ID")
    where = one.add_mutually_exclusive_group(required=True)
    where.add_argument("--before", metavar="ID", help="before this story")
    where.add_argument("--after", metavar="ID", help="after this story")
    where.add_argument("--first", action="store_true", help="to the start")
    where.add_argument("--last", action="store_true", help="to the end")


def _command(commands: Any, name: str, summary: str, example: str) -> ArgumentParser:
    parser = add_action(commands, name, summary, example)
    add_workspace(parser, json=True)
    return parser


def _fields(parser: ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT", help="what and why")
    parser.add_argument(
        "--criterion",
        dest="criteria",
        action="append",
        metavar="TEXT",
        help="an acceptance criterion; repeatable, '' for none",
    )
    parser.add_argument("--priority", type=float, metavar="N", help="1 is the highest")
    parser.add_argument(
        "--depends-on", action="append", metavar="ID", help="a story that must be done first; repeatable, '' for none"
    )
    parser.add_argument(
        "--verify", action="append", metavar="COMMAND", help="a command that proves the story; repeatable, '' for none"
    )
    parser.add_argument(
        "--touches",
        action="append",
        metavar="PATH",
        help="a file, folder or pattern that it will probably change; repeatable, '' for none",
    )


def check(parser: ArgumentParser) -> None:
    """Check that the plan is ready to run.

    Errors stop a run: an invalid file, duplicate IDs, unknown dependencies, wrong
    review fields or settings. Warnings waste iterations: vague criteria, stories
    that are too large, nothing that could prove a story. Without PATH, every plan of
    the workspace is checked.

    examples:
      ralph check                                   every plan of this workspace
      ralph check path/to/project                   the plans of another project
      ralph check .ralph/user-login/tasks.json      one plan
      ralph check --strict                          treat warnings as errors
    """
    parser.add_argument("path", nargs="?", metavar="PATH", help="a workspace, the folder of a plan, or a plan")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors (exit code 65)")
    add_workspace(parser, json=True)


def plan_import(parser: ArgumentParser) -> None:
    """Import stories from the files of other tools, exported issues, a Markdown
    checklist, or a plan in any of Ralph's layouts.

    They are added to the end of an existing plan, or start a new one. What was
    imported before is skipped. Finished items stay finished, but unproven. What does
    not become part of a story is listed.

    examples:
      ralph plan import TODO.md --dry-run                    show what would be imported
      ralph plan import .                                    what other tools keep in this project
      gh issue list --json number,title,body,labels,state,url | ralph plan import -
      ralph plan import .beads/issues.jsonl --layout spec.md
      ralph plan import docs/plans --into checkout           every plan in the folder
      ralph plan import @fix_plan.md --done skip             without finished items
    """
    from ralph.importing.kinds import TITLES, Done, names

    kinds = "\n".join(f"  {name:<12} {title}" for name, title in TITLES.items())
    parser.description = f"{parser.description}\n\nkinds:\n{kinds}\n  or any layout of Ralph"
    parser.add_argument("source", metavar="FILE|FOLDER|-", help="what to import; - reads stdin")
    parser.add_argument(
        "--from",
        dest="kind",
        default="",
        choices=names(),
        metavar="KIND",
        help="the kind of source (default: detected)",
    )
    parser.add_argument("--append", action="store_true", help="only add to an existing plan")
    parser.add_argument(
        "--done",
        default="keep",
        choices=[one.value for one in Done],
        help="what to do with finished items (default: keep)",
    )
    parser.add_argument("--again", action="store_true", help="also import what was imported and removed before")
    parser.add_argument("--dry-run", action="store_true", help="show stories and problems; write nothing")
    add_json(parser)
    add_new_plan(parser)
    parser.add_argument("--into", dest="feature", metavar="NAME", help="the same as --feature")


def plan_export(parser: ArgumentParser) -> None:
    """Write the plan in another layout, to stdout or to a new workspace; or mark what is
    done where it was imported from. This workspace is not changed.

    Lists every field that the other layout cannot hold. With --status, finished
    stories are marked in the other tool: issues are closed with the commit that
    proves them, beads are closed, tasks become done. Nothing is reopened.

    examples:
      ralph plan export --layout plan.md                     as Markdown, to stdout
      ralph plan export --layout feature --to ../other       to a new workspace
      ralph plan export --json                               a list of the stories
      ralph plan export --markdown > stories.md              a table
      ralph plan export --status github --dry-run            which issues would be closed
      ralph plan export --status taskmaster                  in .taskmaster/tasks/tasks.json
    """
    from ralph.importing.kinds import WRITTEN_BACK
    from ralph.plans.registry import LAYOUTS

    what = parser.add_mutually_exclusive_group()
    what.add_argument("--layout", dest="target", metavar="LAYOUT", help=", ".join(LAYOUTS.built_in()))
    what.add_argument("--status", choices=WRITTEN_BACK, metavar="TOOL", help=", ".join(WRITTEN_BACK))
    what.add_argument("--markdown", action="store_true", help="a Markdown table of the stories")
    parser.add_argument("--json", action="store_true", help="a JSON list of the stories; with --status, what was done")
    parser.add_argument(
        "--to",
        default="-",
        metavar="PATH",
        help="the folder of a new workspace (default: -, stdout); with --status, the other tool's file",
    )
    parser.add_argument("--dry-run", action="store_true", help="with --status: show what would be marked")
    add_workspace(parser, layout="--from")


def plan_convert(parser: ArgumentParser) -> None:
    """Convert the plan of this workspace to another layout. The old plan is archived.

    Fields without a place in the new layout (reviews, attempts, a failed state) are
    kept in the state folder. Lists everything that is lost or changed.

    examples:
      ralph plan convert --layout tasks.json --dry-run       show what would be lost
      ralph plan convert --layout plan.md                    .ralph/PRD-1/ or the next number
      ralph plan convert --layout feature --name checkout    under another name
    """
    from ralph.plans.registry import LAYOUTS

    parser.add_argument("--layout", dest="target", required=True, metavar="LAYOUT", help=", ".join(LAYOUTS.built_in()))
    parser.add_argument("--name", default="", metavar="NAME", help="the name of the new plan (default: the old name)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be lost; write nothing")
    add_workspace(parser, layout="--from", json=True)


def plan_archive(parser: ArgumentParser) -> None:
    """Archive a plan, list archives, or restore one.

    Moves the plan, its requirements, progress log and specs to a dated folder,
    writes summary.md, and commits. The folder of a feature or PRD is removed unless
    --keep is given; ralph/, prd.json and spec.md are replaced by fresh files. Nothing
    is ever overwritten.

    examples:
      ralph plan archive                          the plan of this workspace
      ralph plan archive --label first-try        under this name
      ralph plan archive list
      ralph plan archive restore 2026-01-31-153000-user-login
    """
    parser.add_argument("--label", default="", metavar="NAME", help="the name of the archive (default: the feature)")
    parser.add_argument("--keep", action="store_true", help="replace the folder of the feature with a fresh one")
    parser.add_argument("--no-commit", action="store_true", help="do not commit")
    add_workspace(parser, json=True)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    _action(actions, "list", "list the archives, oldest first", "ralph plan archive list --json")
    one = _action(actions, "restore", "restore an archived plan", "ralph plan archive restore user-login")
    one.add_argument("name", metavar="NAME", help="the name of the archive, or its end if that is unique")


def _action(actions: Any, name: str, summary: str, example: str) -> ArgumentParser:
    one = add_action(actions, name, summary, example)
    add_json(one)
    add_project(one)
    for option in one._actions:  # an option before ACTION must survive: argparse would reset it to the default
        option.default = SUPPRESS
    return one


def plan_sync(parser: ArgumentParser) -> None:
    """Compare a spec with its beads: a step is ticked if and only if its bead is closed.

    Beads are read with `br` or `bd`, whichever is on PATH. Exit code 0 if the two
    agree, 1 if not. A step without a bead is listed, but is not an error.

    examples:
      ralph plan sync            list steps and beads that disagree
      ralph plan sync --json     for scripts
    """
    from ralph.plans.beads import TOOLS

    parser.add_argument("--tool", choices=TOOLS, help="the program that reads the beads (default: the first on PATH)")
    add_workspace(parser, json=True)
