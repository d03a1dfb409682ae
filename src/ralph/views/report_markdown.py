"""The report of a run as Markdown. All text from a plan or git is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ralph.core.text import one_line, plural
from ralph.report.report import STATES, Report
from ralph.views.report_lines import facts, headline, proof_lines, story_facts, why, worker_facts
from ralph.views.worker_lines import clash_line


def as_markdown(report: Report) -> str:
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: Report) -> Iterator[str]:
    end = report.explanation
    yield f"# {_md(headline(report))}"
    yield ""
    yield _md(f"{end.done} of {plural(end.total, 'story')} done. {end.why} {end.detail}")
    if report.look_first:
        yield "\n## Look at first\n"
        yield from (f"- {_md(line)}" for line in report.look_first)
    if report.questions:
        yield "\n## Questions for you\n"
        yield from (f"- **{_md(one.story or 'the run')}** {_md(one.text)}" for one in report.questions)
    for state in STATES:
        stories = [story for story in report.stories if story.state == state]
        if stories:
            yield f"\n## {state.capitalize()} ({len(stories)})\n"
        for story in stories:
            yield f"- **{_md(story.id)}** {_md(story.title)}" + (f" ({story_facts(story)})" if story.iterations else "")
            if shown := why(story):
                yield f"  - {_md(shown)}"
            for line in (*proof_lines(story), *(f"changed tests or checks: {doubt}" for doubt in story.doubts)):
                yield f"  - {_md(line)}"
            for commit in story.commits:
                yield f"  - `{commit.id[:9]}` {_md(commit.subject)}{commit.remark}"
    if report.clashes:
        yield "\n## Returned by the merge queue\n"
        yield from (f"- {_md(clash_line(clash))}" for clash in report.clashes)
    if report.rejected:
        yield "\n## Rejected attempts\n"
        for one in report.rejected:
            kept = "dropped" if one.is_missing else f"`ralph rescue show {one.name}`"
            yield f"- {_md(f'{one.story} iteration {one.iteration}, {one.kind}: {one.reason}')} ({kept})"
            yield from (f"  - {_md(reason)}" for reason in one.reasons)
    if report.refused_hosts:
        yield "\n## Hosts that the sandbox refused\n"
        yield from (f"- {_md(host.line)} (`{host.allow}`)" for host in report.refused_hosts)
    if report.workers:
        yield "\n## Workers\n"
        yield from (f"- {_md(worker_facts(worker))}" for worker in report.workers)
    yield "\n## The run\n"
    # What to do next is Ralph's own text, with commands between backticks.
    yield from (f"- {name}: {value if name == 'next' else _md(value)}" for name, value in facts(report))


def _md(text: str) -> str:
    """Text with all Markdown and HTML escaped."""
    return re.sub(r"([\\`*_{}\[\]|#~!])", r"\\\1", escape(one_line(text, 2000), quote=False))
