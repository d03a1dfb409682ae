"""`ralph task finding` and `ralph task skip`: what a person decides about a story, also while a run works on it."""

from __future__ import annotations

import os
from argparse import Namespace

from ralph.cli.control import working_ref
from ralph.cli.output import emit_json, note, say, say_raw
from ralph.core.errors import UsageError
from ralph.core.plan import Story
from ralph.core.review import Entry, Fate
from ralph.core.text import one_line
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.findings import decide, find_finding
from ralph.workspace.plan_edit import Editor, find_story
from ralph.workspace.skips import skip


def finding(args: Namespace) -> int:
    decides = args.reject is not None or args.confirm is not None
    if decides:
        Editor.of(os.environ).refuse_to("decide about a finding", hint="say in the fix why it is not a problem")
    ref = working_ref(args, open_ref(args)[0])
    story = find_story(store_for(ref, os.environ).load().plan, args.id)
    if decides and not args.finding:
        raise UsageError("the ID of the finding is missing", hint=f"`ralph task finding {args.id}` lists them")
    if not decides:
        return _list(story, args.finding, as_json=args.json)
    fate, reason = (Fate.OPEN, args.confirm) if args.reject is None else (Fate.REJECTED, args.reject)
    done = decide(ref, story.id, args.finding, fate, reason, os.environ)
    if args.json:
        word = "confirmed" if fate is Fate.OPEN else "rejected"
        emit_json({"story": done.story, "finding": done.finding, "decision": word, "queued": done.waits})
        return 0
    say(done.sentence)
    return 0


def _list(story: Story, wanted: str | None, *, as_json: bool) -> int:
    entries = (find_finding(story, wanted),) if wanted else story.ledger.entries
    if as_json:
        emit_json([_document(entry) for entry in entries])
        return 0
    for entry in entries:
        say_raw(f"{entry.id}  {fate_in_words(entry)}: {one_line(str(entry.finding))}")
        for name, text in (("evidence", entry.finding.evidence), ("reason", entry.reason)):
            if text:
                say_raw(f"    {name}: {one_line(text)}")
    if not entries:
        say(f"No review of {one_line(story.id)} has raised a finding.")
    elif not wanted:
        note(f'decide with `ralph task finding {one_line(story.id)} {entries[0].id} --reject "…"` or `--confirm`')
    return 0


def fate_in_words(entry: Entry) -> str:
    if entry.is_confirmed:
        return f"{entry.fate.value}, confirmed by you"
    return f"{entry.fate.value} by you" if entry.by_user and entry.fate is Fate.REJECTED else entry.fate.value


def _document(entry: Entry) -> dict[str, object]:
    found = entry.finding
    return {
        "id": entry.id,
        "fate": entry.fate,
        "by_user": entry.by_user,
        "reason": entry.reason,
        "text": found.text,
        "place": found.place,
        "severity": found.severity,
        "criterion": found.criterion,
        "evidence": found.evidence,
        "reviewer": entry.reviewer,
        "review": entry.review,
    }


def skip_story(args: Namespace) -> int:
    Editor.of(os.environ).refuse_to("skip a story")
    ref = working_ref(args, open_ref(args)[0])
    done = skip(ref, args.id, args.reason or "", os.environ)
    if args.json:
        emit_json({"story": done.story, "why": done.why, "queued": done.waits})
    else:
        say(done.sentence)
    return 0
