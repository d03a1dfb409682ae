"""`ralph runs cost`: show what runs cost, and a forecast for the rest."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from ralph.budget.costs import Gathered, Receipt, Sums, add_up, by_model, gather, group, journals
from ralph.budget.forecast import Prospect, prospect, settings_of, shared_rooms
from ralph.budget.settings import ledger_of, prices_of, repo_of
from ralph.cli.output import emit_json, note, say, warn
from ralph.config.prices import PriceTable
from ralph.core.agent import Tokens
from ralph.core.errors import UsageError
from ralph.core.money import MICROS, Basis, Room, dollars, figure
from ralph.core.text import one_line, plural
from ralph.host.git.repo import Repo
from ralph.journal.ledger import Reset, local_day
from ralph.views.words import duration, foreseen, ground_for, moment
from ralph.workspace.find import open_plan, root_of
from ralph.workspace.runs import chosen_plans

_BY: dict[str, Callable[[Receipt], str]] = {
    "story": lambda receipt: receipt.story or f"({receipt.mode})",
    "agent": lambda receipt: receipt.agent or "(unknown)",
    "model": lambda receipt: receipt.model or "(unknown)",
    "day": lambda receipt: time.strftime("%Y-%m-%d", time.localtime(receipt.at)),
    "run": lambda receipt: receipt.run,
}
_MARKS = {Basis.REPORTED: "", Basis.ESTIMATED: "~", Basis.RESERVED: "≤", Basis.UNKNOWN: ""}


def run(args: Namespace) -> int:
    if args.forecast:
        return _forecast(args)
    root = root_of(args, os.environ)
    repo = repo_of(root, os.environ)
    if args.reset:
        ledger_of(root, repo, os.environ).append(Reset(time.time()), durable=True)
        note("reset the budgets of this workspace and its stories; today's budget still counts")
        return 0
    found = _of_chosen_plans(args, root, gather(journals(root, repo, os.environ), args.run))
    for problem in found.damaged:
        warn(problem)
    if args.run and not found.receipts:
        raise UsageError(f"unknown run {one_line(repr(args.run), 40)}", hint="`ralph runs` lists the runs")
    if args.by:
        return _by(args, found)
    if args.receipts or args.run:
        return _receipts(args, found)
    return _overview(args, root, repo, found)


def _of_chosen_plans(args: Namespace, root: Path, gathered: Gathered) -> Gathered:
    """The receipts of the selected plans. In a worktree, a plan has the same path below another folder."""
    plans = chosen_plans(args, os.environ)
    if plans is None:
        return gathered
    ends = tuple(f"/{Path(plan).relative_to(root)}" for plan in plans)
    return Gathered(tuple(one for one in gathered.receipts if one.plan.endswith(ends)), gathered.damaged)


def _by(args: Namespace, found: Gathered) -> int:
    name_of = _BY[args.by]
    if args.by == "story" and len({receipt.plan for receipt in found.receipts if receipt.plan}) > 1:
        name_of = _with_plan
    rows = group(by_model(found.receipts) if args.by == "model" else found.receipts, name_of)
    rows.sort(key=lambda row: row.name if args.by in ("day", "run") else -row.usd)
    whole = add_up("total", found.receipts)
    if args.json:
        emit_json({"by": args.by, "rows": rows, "total": whole})
        return 0
    if not rows:
        say("Nothing has been spent in this workspace yet.")
        return 0
    wide = min(max(len(one_line(row.name)) for row in [*rows, whole]), 40)
    for row in [*rows, whole]:
        say(f"{one_line(row.name, wide):<{wide}}  {_sums(row)}", "bold" if row is whole else "")
    return 0


def _with_plan(receipt: Receipt) -> str:
    """The story with its plan: stories of different plans may have the same ID."""
    name = _BY["story"](receipt)
    return f"{Path(receipt.plan).parent.name}/{name}" if receipt.plan else name


def _sums(row: Sums) -> str:
    words = f"{_total(row):>12}  {plural(row.iterations, 'iteration'):<14} {_classes(row.tokens)}"
    return words + (f"  {row.unknown} of unknown cost" if row.unknown else "")


def _total(row: Sums) -> str:
    if row.unknown and row.unknown == row.iterations:
        return "unknown"
    mark = "≤" if row.reserved_usd else "~" if row.estimated_usd else ""
    return f"{mark}${row.usd:,.2f}{' +?' if row.unknown else ''}"


def _classes(tokens: Tokens) -> str:
    if not tokens.total:
        return "no tokens reported"
    read = f"{tokens.cache_read:,} from cache, {tokens.cache_write:,} to cache"
    return f"{tokens.total:,} tokens ({tokens.input:,} in, {tokens.output:,} out, {read})"


def _receipts(args: Namespace, found: Gathered) -> int:
    whole = add_up("total", found.receipts)
    if args.json:
        emit_json({"receipts": found.receipts, "total": whole})
        return 0
    last = ""
    for receipt in found.receipts:
        if receipt.run != last:
            say(f"run {receipt.run}", "bold")
            last = receipt.run
        cost = "unknown" if receipt.usd is None else f"{_MARKS[receipt.basis]}${receipt.usd:,.4f}"
        what = f"{receipt.mode} {one_line(receipt.story, 30)}".strip()
        how = receipt.outcome or "no end recorded"
        took = duration(receipt.seconds)
        say(f"  {receipt.iteration:>3}  {moment(receipt.at)}  {what:<24} {how:<13} {cost:>10}  {took}")
        say(f"       {_classes(receipt.tokens)}  {_who(receipt)}".rstrip(), "dim")
    say(f"total  {_sums(whole)}", "bold")
    return 0


def _who(receipt: Receipt) -> str:
    return one_line(" ".join(filter(None, (receipt.agent, receipt.model))), 60)


def _overview(args: Namespace, root: Path, repo: Repo | None, found: Gathered) -> int:
    whole = add_up("total", found.receipts)
    today = local_day(time.time())
    day = add_up("today", [one for one in found.receipts if local_day(one.at) >= today])
    runs = len({receipt.run for receipt in found.receipts})
    budgets = _budgets(root, repo)
    if args.json:
        emit_json(
            {
                "total": whole,
                "today": day,
                "runs": runs,
                "budgets": [_plain(room) for room in budgets],
                "prices": _prices(root).origin,
            }
        )
        return 0
    if not found.receipts:
        say("Nothing has been spent in this workspace yet.")
    else:
        say(f"{_total(whole)} for {plural(whole.iterations, 'iteration')} in {plural(runs, 'run')}", "bold")
        for line in _remarks(whole, _prices(root)):
            say(f"  {line}")
        say(f"  {_classes(whole.tokens)}")
        say(f"  today {_total(day)} for {plural(day.iterations, 'iteration')}")
    for room in budgets:
        say(f"  {room.key}: {figure(room, room.spent)} of {figure(room, room.limit)}, {figure(room, room.left)} left")
    return 0


def _plain(room: Room) -> dict[str, object]:
    """A budget in dollars, or in tokens."""
    unit = MICROS if room.is_money else 1
    return {
        "budget": room.key,
        "limit": room.limit / unit,
        "spent": room.spent / unit,
        "set_aside": room.held / unit,
        "left": room.left / unit,
    }


def _prices(root: Path) -> PriceTable:
    return prices_of(settings_of(root, os.environ), root)


def _remarks(whole: Sums, prices: PriceTable) -> Iterator[str]:
    if whole.unknown:
        yield f"{plural(whole.unknown, 'iteration')} of unknown cost, not included"
    if whole.estimated_usd:
        yield f"{dollars(round(whole.estimated_usd * MICROS))} of it estimated: {prices.origin}"
    if whole.reserved_usd:
        yield f"${whole.reserved_usd:,.2f} of it reserved for sessions that never reported their cost"


def _budgets(root: Path, repo: Repo | None) -> list[Room]:
    return shared_rooms(settings_of(root, os.environ), root, repo, os.environ)


def _forecast(args: Namespace) -> int:
    opened = open_plan(args)
    told = prospect(opened, repo_of(opened.root, os.environ), os.environ)
    if args.json:
        emit_json(told)
        return 0
    _say_forecast(told)
    return 0


def _say_forecast(told: Prospect) -> None:
    if told.forecast is None:
        say("No story is open.")
        return
    say(f"{plural(told.forecast.stories, 'open story')}: {foreseen(told.forecast)}")
    say(f"  {ground_for(told.forecast)}")
    if told.forecast.chance is not None:
        say(f"  {told.forecast.chance:.0%} chance to finish within what is left of the budgets")
    if told.kept.runs:
        half, most, runs = told.kept.within_half, told.kept.within_most, plural(told.kept.runs, "finished run")
        say(f"  of {runs}, {half} stayed within the lower figure and {most} within the upper one")
