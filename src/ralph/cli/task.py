"""`ralph task`: list, show, add and edit stories. What a person decides about one is in `cli.decisions`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from ralph.cli.output import emit_json, note, say, say_raw, warn
from ralph.cli.show import as_json, bead_lines, id_width, line_width, story_card, story_lines
from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Mode, Order, State, Story
from ralph.core.select import next_work, why_nothing_is_ready
from ralph.core.text import one_line
from ralph.plans.lint import is_example
from ralph.plans.plan_edits import insert, move, move_first, split
from ralph.plans.registry import traits
from ralph.state.locks import is_at_work, turn
from ralph.state.places import plan_state
from ralph.workspace import plan_edit as given
from ralph.workspace.find import OpenPlan, open_ref, store_for
from ralph.workspace.plan_edit import (
    Editor,
    change_fields,
    change_state,
    find_story,
    finish,
    reasons,
    refuse_broken,
    reopen,
    waits_for_later,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.plans.beads import Bead


def run(args: Namespace) -> int:
    if args.action in ("finding", "skip"):
        from ralph.cli.decisions import finding, skip_story

        return finding(args) if args.action == "finding" else skip_story(args)
    ref, settings = open_ref(args)
    store = store_for(ref, os.environ)

    def read() -> OpenPlan:
        opened = OpenPlan(ref.root, ref, store.layout, store.load(), store, settings)
        for notice in opened.loaded.notices:
            warn(notice)
        return opened

    shows = {"list": _list, "show": _show, "next": _next}
    if args.action in shows:
        return shows[args.action](read(), args)
    makes = {"add": _add, "set": _set, "done": _done, "reopen": _reopen, "split": _split, "move": _move}
    makes["remove"] = _remove
    editor = Editor.of(os.environ)
    if not editor.is_agent and is_at_work(plan_state(ref, os.environ)):
        warn("a run is working on this plan: it merges your change, or keeps your version and says where")
    with turn(ref, os.environ, agent=editor.is_agent):
        opened = read()
        _save(opened, makes[args.action](opened, args, editor), args)
    return 0


def _list(opened: OpenPlan, args: Namespace) -> int:
    stories = [s for s in opened.plan.stories if args.state in (None, s.state.value)]
    if args.json:
        emit_json([story.id for story in stories] if args.ids else [as_json(s, _why(opened, s)) for s in stories])
        return 0
    if args.ids:
        for story in stories:
            say_raw(one_line(story.id))
    else:
        _say_stories(opened, stories)
    return 0


def _say_stories(opened: OpenPlan, stories: Iterable[Story]) -> None:
    room, indent = line_width(), id_width(opened.plan)
    for story in stories:
        for line in story_lines(story, room, indent, _why(opened, story)):
            say_raw(line)


def _why(opened: OpenPlan, story: Story) -> str:
    return opened.loaded.sidecar.get(story.id).why or ""


def _show(opened: OpenPlan, args: Namespace) -> int:
    story = find_story(opened.plan, args.id)
    bead = _bead(opened, story)
    if args.json:
        emit_json(as_json(story, _why(opened, story)) | {"bead": bead})
    else:
        _say_card(opened, story, bead)
    return 0


def _bead(opened: OpenPlan, story: Story) -> Bead | None:
    """The state of a step's bead. Only a spec has beads; the tracker's program is looked up only for one."""
    if not story.ref or not traits(opened.ref.layout).has_tracker:
        return None
    from ralph.workspace.tracker import Tracking

    bead, told = Tracking(opened.ref, opened.settings.config, os.environ).bead(story)
    if told:
        (warn if told.is_warning else note)(told.text)
    return bead


def _follow(opened: OpenPlan, after: OpenPlan) -> None:
    """Update the beads of steps that changed."""
    if not traits(opened.ref.layout).has_tracker:
        return
    from ralph.workspace.tracker import Tracking

    for told in Tracking(opened.ref, opened.settings.config, os.environ).follow(opened.plan, after.plan):
        (warn if told.is_warning else note)(told.text)


def _say_card(opened: OpenPlan, story: Story, bead: Bead | None, mode: Mode | None = None) -> None:
    for line in story_card(story, opened.plan, _why(opened, story), mode):
        say_raw(line)
    for line in bead_lines(bead) if bead else ():
        say_raw(line)


def _next(opened: OpenPlan, args: Namespace) -> int:
    found = next_work(opened.plan, review=opened.settings.config.review.enabled)
    bead = _bead(opened, found[0]) if found else None
    if args.json:
        emit_json(as_json(found[0]) | {"mode": found[1], "bead": bead} if found else None)
    elif found:
        _say_card(opened, found[0], bead, found[1])
    elif opened.plan.is_finished:
        say("Every story is done.")
    else:
        say(f"Nothing is ready: {why_nothing_is_ready(opened.plan)}")
    return ExitCode.COMPLETE if found or opened.plan.is_finished else ExitCode.UNFINISHED


def _given(opened: OpenPlan, args: Namespace) -> dict[str, Any]:
    """The validated fields from the command line."""
    fields: dict[str, Any] = {}
    for name in ("description", "notes"):
        if (text := getattr(args, name, None)) is not None:
            fields[name] = given.prose(f"--{name}", text)
    for name, flag in (("criteria", "--criterion"), ("verify", "--verify"), ("touches", "--touches")):
        if (texts := getattr(args, name)) is not None:
            fields[name] = given.lines(flag, texts)
    if args.depends_on is not None:
        wanted = given.lines("--depends-on", args.depends_on)
        fields["depends_on"] = tuple(dict.fromkeys(find_story(opened.plan, story_id).id for story_id in wanted))
    if args.priority is not None:
        if opened.plan.order is Order.FILE:
            raise UsageError(
                f"{opened.ref.layout} uses the order in the file and has no priorities",
                hint="`ralph task move ID --before OTHER` changes the order",
            )
        fields["priority"] = given.priority(args.priority)
    return fields


def _add(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    editor.refuse_to_add()
    fields = _given(opened, args)
    if traits(opened.ref.layout).needs_criteria and not fields.get("criteria"):
        raise UsageError(
            f"a story in {opened.ref.layout} needs a criterion",
            hint="say how to verify it, e.g. --criterion 'GET /health answers 200'",
        )
    example = next((story.id for story in opened.plan.stories if is_example(story)), "")
    if example and args.new_id is None and args.after is None:  # the first story of a new plan
        blank = {"description": "", "criteria": (), "depends_on": (), "verify": (), "touches": ()}
        return [SetFields(example, blank | {"title": given.line("the title", args.title)} | fields)]
    new_id = given.new_id(args.new_id) if args.new_id is not None else ""
    after = find_story(opened.plan, args.after).id if args.after is not None else None
    story = Story(id=new_id, title=given.line("the title", args.title), **fields)
    return [insert(opened.plan, story, after)]


def _set(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    fields = _given(opened, args)
    if args.title is not None:
        fields["title"] = given.line("--title", args.title)
    if not fields and args.state is None:
        raise UsageError("nothing to set", hint="`ralph task set --help` lists the fields")
    if args.why is not None and args.state not in (State.FAILED, State.BLOCKED):
        raise UsageError("--why belongs to --state failed or --state blocked", hint="--notes is for everything else")
    find_story(opened.plan, args.id)
    changes: list[Change] = [change_fields(opened.plan, args.id, fields, editor=editor)] if fields else []
    if args.state is None:
        return changes
    plan, sayable = apply(opened.plan, changes), opened.layout.STATES
    state = change_state(plan, args.id, State(args.state), editor=editor, sayable=sayable, force=args.force)
    return [*changes, state]


def _done(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    return [finish(opened.plan, args.id, given.prose("--note", args.note), editor=editor, force=args.force)]


def _reopen(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    return [reopen(opened.plan, args.id, editor=editor)]


def _remove(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    editor.refuse_to("remove a story")
    story = find_story(opened.plan, args.id)
    if waiting := [each.id for each in opened.plan.stories if story.id in each.depends_on]:
        depends = f"{', '.join(map(one_line, waiting))} {'depends' if len(waiting) == 1 else 'depend'} on {story.id}"
        raise UsageError(depends, hint=f"change that first: ralph task set {waiting[0]} --depends-on ''")
    if len(opened.plan.stories) == 1:
        raise UsageError(f"{story.id} is the only story", hint="a plan needs one; `ralph task set` changes it")
    note(f"removed {story.id} {one_line(story.title, 60)}; it is still in git if it was committed")
    return [RemoveStory(story.id)]


def _split(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    editor.refuse_to("split a story")
    story = find_story(opened.plan, args.id)
    return split(opened.plan, story.id, [given.line("a title", title) for title in args.titles])


def _move(opened: OpenPlan, args: Namespace, editor: Editor) -> list[Change]:
    editor.refuse_to("change the order of the stories")
    story = find_story(opened.plan, args.id)
    if args.first:
        return move_first(opened.plan, story.id)
    neighbour = args.before if args.before is not None else args.after
    if neighbour is not None:
        find_story(opened.plan, neighbour)
    return move(opened.plan, story.id, args.before, after=args.after)


def _save(opened: OpenPlan, changes: list[Change], args: Namespace) -> None:
    refuse_broken(opened.plan, changes)
    why = given.prose("--why", getattr(args, "why", None) or "")
    try:
        loaded = opened.store.save(opened.loaded, changes, reasons(changes, why))
    except OSError as error:
        raise SetupError(
            f"could not write {opened.ref.path}: {error.strerror}",
            hint="check the disk and the permissions of the folder, then try again",
        ) from None
    after = OpenPlan(opened.root, opened.ref, opened.layout, loaded, opened.store, opened.settings)
    touched = {c.story.id if isinstance(c, AddStory) else c.story for c in changes} or {args.id}
    stories = [story for story in after.plan.stories if story.id in touched]
    if args.json:
        emit_json([as_json(story, _why(after, story)) for story in stories])
    else:
        _say_stories(after, stories)
    if loaded.source == opened.source and loaded.sidecar == opened.loaded.sidecar:
        note("nothing to change")
    _follow(opened, after)
    for story_id in sorted(_reordered(changes)):
        if later := waits_for_later(after.plan, story_id):
            warn(f"{story_id} still waits for {', '.join(later)}, which come later")


def _reordered(changes: list[Change]) -> set[str]:
    """Stories whose position or dependencies have changed."""
    moved = {c.story for c in changes if isinstance(c, MoveStory)}
    moved |= {c.story for c in changes if isinstance(c, SetFields) and {"priority", "depends_on"} & set(c.fields)}
    return moved | {c.story.id for c in changes if isinstance(c, AddStory)}
