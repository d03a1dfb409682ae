"""`ralph bench review`: measure reviewers on stories with known defects."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from ralph.agents.program import which
from ralph.agents.registry import AGENTS
from ralph.agents.registry import agent as find_agent
from ralph.cli.bench import require_ready
from ralph.cli.output import ask, emit_json, is_interactive, note, paint, say, say_raw, warn
from ralph.config.layers import Settings
from ralph.config.schema import Config
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.fallback import parts, reviewer_parts
from ralph.host.process.table import require_process_control
from ralph.review.material import lens
from ralph.session.choice import agent_and_model, reviewer_of, reviewers_of
from ralph.trial.review_bench import Rate, Result, Reviewer, Said, measure, settings_for, together
from ralph.trial.review_cases import kinds
from ralph.workspace.find import open_settings
from ralph.workspace.trust import refuse_inside_loop

_HEAD = ("reviewer", "recall", "false alarms", "undecided", "cost", "time")


def compare(args: Namespace) -> int:
    require_process_control()
    refuse_inside_loop(os.environ, "measure reviewers")
    root, _, settings = open_settings(args)
    _require_sense(args, root)
    names = list(dict.fromkeys(filter(None, re.split(r"[,\s]+", args.reviewers))))
    reviewers = [_reviewer(name, settings.config, root) for name in names or _configured(settings.config)]
    for reviewer in reviewers:
        _require_ready(reviewer, spend=args.yes_spend)
    if not args.json:
        how = "the real services; this costs money" if args.yes_spend else "a scripted model that objects by turns"
        stories = len(set(args.only) or kinds())
        note(f"{2 * stories * args.rounds} reviews for each reviewer, half of them of work with a defect, on {how}")
    results = [
        measure(
            reviewer,
            args.seed,
            only=args.only,
            rounds=args.rounds,
            max_cost=args.max_cost if args.yes_spend else None,
            report=(lambda _: None) if args.json else note,
        )
        for reviewer in reviewers
    ]
    if args.json:
        emit_json([_as_json(result) for result in results])
    else:
        _show(results)
    if args.apply:
        _apply(args, results, settings)
    return ExitCode.COMPLETE if all(_is_whole(result) for result in results) else ExitCode.UNFINISHED


def _require_sense(args: Namespace, root: Path | None) -> None:
    if not args.max_cost > 0:
        raise UsageError("--max-cost must be more than 0")
    if args.rounds < 1:
        raise UsageError("--rounds must be at least 1")
    if unknown := [kind for kind in args.only if kind not in kinds()]:
        raise UsageError(f"unknown kind of defect {unknown[0]!r}", hint=f"known: {', '.join(kinds())}")
    if args.apply and not args.yes_spend:
        raise UsageError(
            "--apply needs figures of a real reviewer: those of a scripted model say nothing", hint="add --yes-spend"
        )
    if args.apply and root is None:
        raise UsageError("--apply needs a workspace to change the settings of", hint="run it in a project, or `cd`")


def _configured(config: Config) -> list[str]:
    """Empty: the one that reviews."""
    return list(reviewers_of(config)) or [""]


def _reviewer(name: str, config: Config, root: Path | None) -> Reviewer:
    page, choice = reviewer_parts(name, AGENTS.names()) if "@" in name else ("", "")
    if not choice:
        page, choice = ("", name) if parts(name, AGENTS.names())[0] else (name, "")
    if choice.endswith("/"):
        raise UsageError(f"{name} names no model", hint=f"{name[:-1]}, or {name}MODEL")
    text = lens(page, root or Path.cwd())
    if choice:
        agent, model = agent_and_model(config, choice)
        command = config.review.command if agent == (config.review.agent or config.agent.name) else ()
    else:
        who = reviewer_of(config)
        agent, model, command = who.name, who.model, who.command
    shown = f"{agent}/{model}" if model else agent
    return Reviewer(
        name=f"{page}@{shown}" if page else shown,
        agent=find_agent(agent),
        model=model,
        page=page,
        text=text,
        command=command,
    )


def _require_ready(reviewer: Reviewer, *, spend: bool) -> None:
    agent = reviewer.agent
    if agent.NAME == "scripted":
        raise UsageError("the agent `scripted` reviews by a script", hint="name another one with --reviewers")
    if not reviewer.command:
        return require_ready(agent, spend=spend)
    if not spend:
        raise UsageError("a reviewer with a command line of its own has no scripted model", hint="add --yes-spend")
    if which(reviewer.command[0], Path.cwd(), os.environ.get("PATH", "")) is None:
        raise SetupError(f"{reviewer.command[0]} not found on PATH", hint="it is in review.command")
    return None


def _is_whole(result: Result) -> bool:
    return len(result.judgements) == result.cases


def _show(results: Sequence[Result]) -> None:
    rows = [_HEAD, *map(_row, results)]
    if len(results) > 1 and all(map(_is_whole, results)):
        recall, alarms = together(results)
        rows.append(("all of them together", _rate(recall), _rate(alarms), "", "", ""))
    for line in _aligned(rows):
        say_raw(line)
    say()
    head = ("defect", *(result.reviewer for result in results))
    for line in _aligned([head, *_by_kind(results)]):
        say_raw(line)
    for result in results:
        if result.problem:
            where = f"; its folder was kept: {result.kept}" if result.kept else ""
            done = f"{len(result.judgements)} of {result.cases} reviews"
            warn(f"{result.reviewer}: {done}: {result.problem}{where}")
    if results[0].is_scripted:
        note("the verdicts were scripted: the figures only show that the procedure works")
    else:
        note("in brackets: between which bounds the share lies with 95 % confidence")


def _row(result: Result) -> tuple[str, ...]:
    cost = "unknown" if result.cost_usd is None else f"{'~' if result.is_estimated else ''}${result.cost_usd:.2f}"
    return (
        result.reviewer,
        _rate(result.recall),
        _rate(result.false_alarms),
        str(result.undecided),
        cost,
        f"{result.seconds:.0f} s",
    )


def _rate(rate: Rate) -> str:
    return f"{rate.count} of {rate.of} ({rate.low:.0%}–{rate.high:.0%})" if rate.of else "0 of 0"


def _by_kind(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    for kind in kinds():
        cells = []
        for result in results:
            mine = [one.said for one in result.judgements if one.kind == kind and one.is_defective]
            caught = sum(said is Said.OBJECTED for said in mine)
            cells.append("" if not mine else f"{caught} of {len(mine)}" if len(mine) > 1 else _word(mine[0]))
        if any(cells):
            yield (kind, *cells)


def _word(said: Said) -> str:
    return {Said.OBJECTED: "found", Said.APPROVED: "missed", Said.NOTHING: "undecided"}[said]


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(wide[at]) for at, cell in enumerate(row)).rstrip()
        yield paint(line, "bold") if number == 0 else line


def _as_json(result: Result) -> dict[str, object]:
    of_kinds = {
        kind: {
            "found": sum(one.said is Said.OBJECTED for one in result.judgements if _is_defect(one, kind)),
            "of": sum(_is_defect(one, kind) for one in result.judgements),
        }
        for kind in kinds()
    }
    fields: dict[str, object] = {name: getattr(result, name) for name in result.__struct_fields__}
    fields["kinds"] = {kind: counts for kind, counts in of_kinds.items() if counts["of"]}
    return fields | {"suggested": {} if result.is_scripted or not _is_whole(result) else settings_for(result)}


def _is_defect(one: object, kind: str) -> bool:
    return getattr(one, "is_defective", False) and getattr(one, "kind", "") == kind


def _apply(args: Namespace, results: Sequence[Result], settings: Settings) -> None:
    """Through `ralph config set`, which checks each value."""
    from ralph.cli.config import change

    whole = [result for result in results if _is_whole(result)]
    best = max(whole, key=lambda one: (one.gain, -(one.cost_usd or 0), -one.seconds), default=None)
    if best is None:
        warn("--apply changed nothing: no reviewer gave all of its reviews")
        return
    if not best.tells_good_from_bad:
        warn(
            f"--apply changed nothing: {best.reviewer} found {_rate(best.recall)} defects and objected to "
            f"{_rate(best.false_alarms)} good stories, which does not show that it tells them apart"
        )
        return
    wanted = {key: value for key, value in settings_for(best).items() if _now(settings, key) != value}
    if "review.agent" in wanted and _now(settings, "review.command"):
        wanted["review.command"] = ""  # it is the command line of the agent that reviewed so far
    if not wanted:
        note(f"{best.reviewer} is the best, and the settings say so already")
        return
    note(
        f"{best.reviewer} found {_rate(best.recall)} defects and objected to {_rate(best.false_alarms)} good stories; "
        f"with review.cap {settings_for(best)['review.cap']}, two reviews may find something, and then good work is "
        "approved with a probability of 95 %"
    )
    for key, value in wanted.items():
        note(f"  {key}: {_now(settings, key) or 'not set'} -> {value or 'not set'}")
    if is_interactive() and not args.json and not ask("change these settings?"):
        note("nothing was changed")
        return
    for key, value in wanted.items():
        change(Namespace(**vars(args) | {"key": key, "value": _written(key, value), "user": False}))


def _now(settings: Settings, key: str) -> str:
    value = settings.value(key)
    return " ".join(value) if isinstance(value, tuple | list) else str(value)


def _written(key: str, value: str) -> str:
    return value or ("[]" if key in ("review.reviewers", "review.command") else '""')
