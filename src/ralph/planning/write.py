"""Writes a plan that the user has accepted: all of its files or none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ralph.core.errors import IllegalChange
from ralph.host.files import read_bytes
from ralph.planning.person import Proposal
from ralph.planning.target import Target
from ralph.setup.scaffold import NOT_SEEN, Started, fresh_files, start_plan
from ralph.state.locks import turn

_EXAMPLE_ROW = "| example | `docs/architecture.md` | how the parts fit together |"


def write_plan(proposal: Proposal, requirements: str, env: Mapping[str, str], *, agreed: bool) -> Started:
    """A new plan, or one that had only examples.

    `requirements`: the page for people and agents. A page with the user's own text is kept.
    """
    target = proposal.target
    ref = target.ref
    contents = {ref.path.relative_to(ref.root).as_posix(): proposal.after.source}
    page = target.requirements.relative_to(ref.root).as_posix()
    if requirements.strip() and not target.written:
        contents[page] = requirements.strip().encode() + b"\n"
        contents |= _lookup_table(target, page)
    unseen = not agreed and any(story.verify for story in proposal.after.plan.stories)
    request = msgspec.structs.replace(
        target.request,
        contents=contents,
        toolchain=target.toolchain,
        is_foreign=unseen,
        trust=agreed or not target.has_proposed_checks,
        force=False,
    )
    with turn(ref, env):
        _require_same(target)
        started = start_plan(request, env)
    return msgspec.structs.replace(started, warnings=(*started.warnings, NOT_SEEN)) if unseen else started


def _require_same(target: Target) -> None:
    path = target.ref.path
    now = read_bytes(path, within=target.ref.root) if path.exists() else b""
    if now != target.on_disk:
        raise IllegalChange(
            f"{path} was changed in the meantime",
            hint="review it, then try again; --resume-draft has the plan as you accepted it",
        )


def _lookup_table(target: Target, page: str) -> dict[str, bytes]:
    """A spec has a table of what to read; a new table gets a line for the page."""
    readme = target.store.layout.locations(target.ref).readme
    if readme is None or readme.exists():
        return {}
    name = readme.relative_to(target.ref.root).as_posix()
    files = fresh_files(target.ref, target.request, target.toolchain)
    return {file.path: naming(page, file.data) for file in files if file.path == name}


def naming(page: str, table: bytes) -> bytes:
    """A new lookup table with the page in place of the example."""
    return table.replace(_EXAMPLE_ROW.encode(), f"| requirements | `{page}` | what is wanted, and why |".encode())
