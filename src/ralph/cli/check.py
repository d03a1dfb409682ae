"""`ralph check`: check that the plan is ready to run."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.core.exit_codes import ExitCode
from ralph.core.problems import Problem, Severity
from ralph.core.text import one_line, plural
from ralph.workspace.lint import Report, check


def run(args: Namespace) -> int:
    report = check(args)
    errors, warnings = _count(report.problems)
    if args.json:
        emit_json(_document(report))
    else:
        _print(report)
    return ExitCode.BAD_DATA if errors or (args.strict and warnings) else ExitCode.COMPLETE


def _count(problems: Iterable[Problem]) -> tuple[int, int]:
    """Errors and warnings."""
    severities = [problem.severity for problem in problems]
    return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


def _document(report: Report) -> dict[str, object]:
    errors, warnings = _count(report.problems)
    plans = []
    for plan in report.plans:
        own = _count(plan.problems)
        counts = {"errors": own[0], "warnings": own[1]}
        plans.append(
            {"plan": plan.ref.path, "layout": plan.ref.layout, **counts, "budget": plan.budget, "remark": plan.remark}
        )
    return {
        "workspace": report.root,
        "errors": errors,
        "warnings": warnings,
        "trusted": report.is_trusted,
        "agent": report.agent or None,
        "plans": plans,
        "problems": report.problems,
    }


def _print(report: Report) -> None:
    for problem in report.problems:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        where = _near(str(problem.where))
        word = f"{paint(problem.severity.value, style)}[{problem.code}]"
        say_raw(f"{where}: {word}: {one_line(problem.message)}" if where else f"{word}: {one_line(problem.message)}")
        if problem.hint:
            say(f"    {one_line(problem.hint)}", "dim")
    if report.settings:
        note(f"settings and prompts: {_tally(report.settings)}")
    for plan in report.plans:
        note(f"{_near(str(plan.ref.path))}: {_tally(plan.problems) if plan.problems else 'ok'}")
        if plan.remark:
            note(f"  {plan.remark}")
        if plan.budget:
            *parts, total = (f"{line.name} {line.tokens:,} of {line.budget:,}" for line in plan.budget)
            note(f"  tokens every session reads (estimated): {', '.join(parts)}; {total}")
    if report.agent:  # not a problem of the plan: in CI there is often none
        warn(f"a run cannot start its agent: {report.agent}")
    if not report.is_trusted:  # nor is this: --strict counts neither
        warn("commands are not trusted yet: `ralph trust`")


def _near(where: str) -> str:
    """Relative to the current folder, so that it can be clicked or pasted."""
    return one_line(where.removeprefix(f"{Path.cwd()}{os.sep}"))


def _tally(problems: Iterable[Problem]) -> str:
    errors, warnings = _count(problems)
    return ", ".join(plural(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count)
