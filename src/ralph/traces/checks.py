"""The spans of checks, and of what they are part of: the baseline, the proof of a story, and the final one. Pure."""

from __future__ import annotations

from ralph.core import events as told
from ralph.core.evidence import CheckResult
from ralph.core.text import one_line
from ralph.core.verdict import Kind, Verdict
from ralph.traces.span import OpenSpan, Status, Tree

_UNENDED = ("proof", "baseline")
"""The journal has only the starts of these checks, one after the other."""
_WIDTH = 300
_WHOLE_RUN = 0
"""Instead of the number of an iteration."""


class Checks:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._open: dict[tuple[int, str], list[OpenSpan]] = {}
        """By iteration and name. The merge queue may run a check of an iteration a second time."""
        self._proofs: dict[int, list[OpenSpan]] = {}
        self._baseline: OpenSpan | None = None
        self._final: OpenSpan | None = None

    def prove(self, number: int, parent: OpenSpan, name: str, *parts: object) -> OpenSpan:
        span = self._tree.open(parent, name, name, number, *parts)
        self._proofs.setdefault(number, []).append(span)
        return span

    def proven(self, number: int, verdict: Verdict) -> None:
        why = one_line(verdict.headline, _WIDTH)
        for span in self._proofs.pop(number, ()):
            if not span.is_finished:
                span.put({"ralph.grade": verdict.grade})
                span.judge(Status.ERROR if verdict.kind is Kind.REJECTED else Status.UNSET, why)
                self._tree.finish(span)

    def merged(self, number: int, merged: str, *, passed: bool, why: str) -> None:
        """The merge queue has proven an iteration's work on this commit."""
        for span in self._proofs.get(number, ()):
            if span.attributes.get("ralph.merged") == merged:
                span.judge(Status.OK if passed else Status.ERROR, one_line(why, _WIDTH))
                self._tree.finish(span)

    def forget(self, number: int) -> None:
        self._proofs.pop(number, None)

    def start(self, event: told.CheckStarted, otherwise: OpenSpan) -> None:
        """`otherwise`: what it is part of if no proof is under way."""
        number, when, tree = event.iteration, event.when, self._tree
        if when == "checkout":  # for views; how it ended is not recorded
            return
        proofs = [span for span in self._proofs.get(number, ()) if not span.is_finished]
        parent = proofs[-1] if proofs else otherwise
        if when == "baseline":
            parent = self._baseline = self._baseline or tree.open(tree.root, "baseline", "baseline")
        elif when == "final":
            parent = self._final = self._final or tree.open(tree.root, "final proof", "final proof")
        number = _WHOLE_RUN if when in ("baseline", "final") else number
        if when in _UNENDED:
            for before in list(parent.children.values()):
                tree.finish(before)
        span = tree.open(parent, f"check {one_line(event.name, 60)}", "check", number, event.name)
        span.put({"ralph.check": one_line(event.name, 100), "ralph.check.when": when})
        self._open.setdefault((number, event.name), []).append(span)

    def end(self, event: told.CheckEnded, otherwise: OpenSpan) -> None:
        number, result = event.iteration, event.result
        span = self._take(number, result.name) or self._take(_WHOLE_RUN, result.name)
        if span is None:
            start = self._tree.now - max(result.seconds, 0)
            name = f"check {one_line(result.name, 60)}"
            span = self._tree.open(otherwise, name, "check", number, result.name, start=start)
        _judge(span, result)
        self._tree.finish(span)

    def begin_work(self) -> None:
        """Of a worker's own baseline the journal has no end: it is over when an iteration starts."""
        if self._baseline is not None:
            self._tree.finish(self._baseline)
            self._baseline = None

    def end_all(self, event: told.Baseline | told.Proved) -> None:
        """Of the baseline, or of the final proof: with these results."""
        if isinstance(event, told.Baseline):
            span, self._baseline = self._baseline, None
        else:
            span, self._final = self._final, None
        if span is None:
            return
        for result in event.results:
            if (check := self._take(_WHOLE_RUN, result.name)) is not None:
                _judge(check, result)
        if isinstance(event, told.Proved):
            span.judge(Status.OK if event.passed else Status.ERROR, "a check failed on the final tree")
        self._tree.finish(span)

    def _take(self, number: int, name: str) -> OpenSpan | None:
        known = self._open.get((number, name), [])
        while known:
            if not (span := known.pop(0)).is_finished:
                return span
        return None


def _judge(span: OpenSpan, result: CheckResult) -> None:
    span.put(
        {
            "ralph.check": one_line(result.name, 100),
            "ralph.check.passed": result.passed,
            "ralph.check.required": result.required,
            "ralph.check.failed_before": result.failed_before or None,
            "process.exit.code": result.code,
        }
    )
    if not result.passed and result.required:
        span.judge(Status.ERROR, "timed out" if result.timed_out else f"exit code {result.code}")
