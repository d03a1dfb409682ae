"""What another version of Ralph left here: whether it opens, and what must change.

State and settings of earlier versions are read as they are: names on disk never change, and a new field has a
default. What does not survive an upgrade is a path: hooks in a client's settings call the interpreter of the
installation that wrote them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ralph import __version__
from ralph.core.errors import BadData
from ralph.core.events import RunStarted
from ralph.core.text import one_line, plural
from ralph.doctor import probes
from ralph.doctor.findings import Finding, Subject, fail, ok, warn
from ralph.journal.records import read
from ralph.session.hook_install import Scope, Target, standing, target_for
from ralph.state.places import workspace_state
from ralph.state.runs import copies_of, journal_path, list_runs

_MOST_NAMED = 5


def plans(subject: Subject) -> Iterator[Finding]:
    if subject.root is not None:
        yield from probes.plans(subject)


def runs(subject: Subject) -> Iterator[Finding]:
    if subject.root is None:
        return
    versions: Counter[str] = Counter()
    unreadable = []
    for copy in copies_of(subject.root, subject.env):
        state = workspace_state(copy, subject.env)
        for run in list_runs(state):
            journal = journal_path(state, run)
            try:
                events = (record.event for record in read(journal))
                versions.update(event.version for event in islice(events, 3) if isinstance(event, RunStarted))
                for _ in events:
                    pass
            except (BadData, OSError) as error:
                unreadable.append(one_line(str(error), 300))
    yield from (fail(text, "its file is kept as it is") for text in unreadable[:_MOST_NAMED])
    if len(unreadable) > _MOST_NAMED:
        yield fail(f"and {len(unreadable) - _MOST_NAMED} more runs", "`ralph runs` lists them")
    listed = ", ".join(f"{count} of {version or 'an unknown version'}" for version, count in sorted(versions.items()))
    if versions:
        yield ok(f"{plural(versions.total(), 'run')} can be read: {listed}")
    elif not unreadable:
        yield ok("no runs yet")


def hooks(subject: Subject) -> Iterator[Finding]:
    stale = set(stale_hooks(subject))
    for target in _targets(subject):
        if target in stale:
            text = f"{target.file} calls another installation of Ralph"
            yield warn(text, "`ralph migrate` has it call this one")
        elif standing(target, subject.root, subject.env).installed:
            yield ok(f"{target.file} calls this Ralph")


def stale_hooks(subject: Subject) -> list[Target]:
    """Settings files whose hooks call another installation, perhaps one that is gone, or lack an event."""
    found = [(target, standing(target, subject.root, subject.env)) for target in _targets(subject)]
    return [target for target, now in found if now.installed and not (now.is_current and not now.missing)]


def _targets(subject: Subject) -> list[Target]:
    scopes = [scope for scope in Scope if scope is Scope.USER or subject.root is not None]
    return [target_for(scope, subject.root, subject.env) for scope in scopes]


def version(_: Subject) -> Iterator[Finding]:
    yield ok(f"this is {__version__}")


MIGRATE = {"ralph": version, "settings": probes.config, "plans": plans, "runs": runs, "hooks": hooks}
