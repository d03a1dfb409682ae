"""`ralph pr`: open a pull request with the report of a run as its text."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import ask, emit_json, is_interactive, note, paint, say, say_raw
from ralph.core.errors import SetupError, UsageError
from ralph.core.events import RunStarted
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.redaction import redact
from ralph.journal.records import read
from ralph.report.pull_request import PullRequest, comment, open_request, prepare, push, require_gh, text_for_github
from ralph.report.report import Report, make_report
from ralph.state.locks import is_alive
from ralph.state.places import home
from ralph.views.report_markdown import as_markdown
from ralph.workspace.find import root_of
from ralph.workspace.runs import choice_of, run_to_watch
from ralph.workspace.trust import refuse_inside_loop


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "open a pull request")
    root = root_of(args, os.environ)
    report = _report(args, root)
    body = redact(as_markdown(report))
    if args.comment:
        return _comment(args, root, body)
    if report.explanation.state == "running":
        raise UsageError(
            f"run {report.explanation.run} has not ended", hint="`ralph watch` shows it, `ralph stop` ends it"
        )
    repo = identify(find_repository(root, None, home(os.environ)))
    wanted = prepare(
        repo, report, body, base=args.base, remote=args.remote, title=redact(args.title), is_draft=args.dry_run
    )
    if args.dry_run:
        return _show(wanted, as_json=args.json)
    require_gh(root, os.environ)
    if not wanted.is_pushed:
        _push(repo, wanted, is_asked_for=args.push)
    address = open_request(repo, wanted, os.environ, draft=args.draft)
    if args.json:
        emit_json({"url": address, "title": wanted.title, "branch": wanted.branch, "base": wanted.base})
    else:
        say(address)
    return 0


def _report(args: Namespace, root: Path) -> Report:
    target = run_to_watch(root, choice_of(args), args.run, os.environ)
    records = list(read(target.journal))
    started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
    return make_report(records, is_alive=is_alive(started), env=os.environ)


def _comment(args: Namespace, root: Path, body: str) -> int:
    if args.dry_run:
        say_raw(text_for_github(body))
        return 0
    address = comment(root, args.comment, body, os.environ)
    if args.json:
        emit_json({"url": address})
    else:
        say(address)
    return 0


def _show(wanted: PullRequest, *, as_json: bool) -> int:
    if as_json:
        emit_json(wanted)
        return 0
    say_raw(paint(wanted.title, "bold"))
    say_raw(wanted.body)
    how = "is pushed" if wanted.is_pushed else "is not pushed; --push does it"
    if wanted.branch and wanted.base and wanted.remote and not wanted.unknown:
        note(f"from {wanted.branch} into {wanted.base} on {wanted.remote}; {wanted.branch} {how}")
        return 0
    parts = ("branch", wanted.branch), ("base", wanted.base), ("remote", wanted.remote)
    note(", ".join(f"{part}: {name or 'unknown'}" for part, name in parts))
    for problem in wanted.unknown:
        note(f"missing: {problem}")
    return 0


def _push(repo: Repo, wanted: PullRequest, *, is_asked_for: bool) -> None:
    question = f"{wanted.remote} does not have {wanted.branch} as it is here. Push it?"
    if is_asked_for or (is_interactive() and ask(question)):
        push(repo, wanted)
        note(f"pushed {wanted.branch} to {wanted.remote}")
        return
    raise SetupError(
        f"{wanted.remote} does not have {wanted.branch} as it is here",
        hint=f"`git push -u {wanted.remote} {wanted.branch}`, or pass --push",
    )
