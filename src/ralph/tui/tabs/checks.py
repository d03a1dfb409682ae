"""Checks: what the loop ran itself, failing ones first, and what it proves: the old tests, witnesses."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.tui.rows import BLANK, Row, Rows, head, row, wrapped
from ralph.tui.scene import Scene, attempt_head
from ralph.views.attempts import Attempt, Check
from ralph.views.columns import cells, fit
from ralph.views.words import seconds

_MOST_LINES = 5000
_WHEN = {
    "baseline": "before any work",
    "final": "on the final commit",
    "checkout": "clean checkout",
    "proof": "proof",
    "story": "of the story",
}


def rows(scene: Scene) -> Rows:
    return list(_rows(scene))


def _rows(scene: Scene) -> Iterator[Row]:
    yield from attempt_head(scene)
    attempt = scene.attempt
    if attempt is not None:
        if attempt.claim:
            yield row(("the agent claims: ", "dim"), attempt.claim)
        yield BLANK
        yield from _results(scene, attempt, attempt.checks, f"c{attempt.iteration}.")
        if not attempt.checks:
            yield row(("no check has run", "dim"))
        yield from _proof(scene, attempt)
    of_run = scene.view.attempts.of_run
    if of_run:
        yield BLANK
        yield head("Of the run", "the baseline and the final checks")
        yield from _results(scene, None, of_run, "r")


def _results(scene: Scene, attempt: Attempt | None, checks: list[Check], lead: str) -> Iterator[Row]:
    numbered = sorted(enumerate(checks), key=lambda each: each[1].result.passed)
    is_first = True
    for index, check in numbered:
        result, key = check.result, f"{lead}{index}"
        usually = not result.passed and is_first and attempt is not None
        is_open, is_first = scene.is_open(key, usually=usually), is_first and result.passed
        word, style = ("✓ passed", "good") if result.passed else ("✗ failed", "bad")
        if not result.passed and not result.required:
            word, style = "✗ failed, allowed to", "warn"
        facts = [seconds(result.seconds), _WHEN.get(check.when, check.when)]
        facts += ["failed before this change too"] if result.failed_before else []
        facts += ["timed out"] if result.timed_out else []
        told = " · ".join(filter(None, facts))
        name = fit(result.name, max(scene.room - cells(f"▸ {word}   {told}"), 16))
        yield row(
            (f"{'▾' if is_open else '▸'} ", "dim"),
            (word, style),
            (f" {name}", "bold"),
            (f"  {told}", "dim"),
            key=key,
            folds=True,
            whole=result.name,
        )
        if is_open:
            yield from _output(scene, attempt, check, index, key)


def _output(scene: Scene, attempt: Attempt | None, check: Check, index: int, key: str) -> Iterator[Row]:
    result = check.result
    yield from wrapped(result.command, scene.room, "key", lead="  $ ", key=key)
    if result.tests is not None:
        counts = result.tests
        told = f"{counts.runner}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"
        yield row(f"  {told}", key=key)
    for name in result.failed:
        yield row(("  ✗ ", "bad"), name, key=key)
    if result.hint:
        yield from wrapped(result.hint, scene.room, "warn", lead="  ", key=key)
    output = scene.source.output(attempt, index, result)
    if not output.is_whole and output.text:
        yield row(("  the end of its output:", "dim"), key=key)
    lines = output.text.splitlines()
    yield from (row(("  │ ", "dim"), line, key=key) for line in lines[-_MOST_LINES:])
    if not lines:
        yield row(("  it printed nothing that was kept", "dim"), key=key)


def _proof(scene: Scene, attempt: Attempt) -> Iterator[Row]:
    proof = attempt.proof
    if proof is None:
        return
    yield BLANK
    yield head("Proof", "in a clean checkout" if proof.where == "checkout" else "in place")
    if proof.restored and proof.changed_expectations:
        yield row(("✗ old tests fail ", "bad"), "with the tests as they were when the story began")
        for each in proof.changed_expectations:
            yield from wrapped(each, scene.room, "bad", lead="  ")
        if proof.excuse:
            yield from wrapped(proof.excuse, scene.room, "dim", lead="  ")
        yield from (row(("  │ ", "dim"), line) for line in proof.old_output.splitlines()[-40:])
    elif proof.restored:
        yield row(("✓ old tests pass ", "good"), (f"with {', '.join(proof.restored)} as they were", "dim"))
    for witness in proof.witnesses:
        own = "the story's own check" if witness.is_own else "a test"
        yield row(("✓ witness ", "good"), witness.name, (f"  {own}: fails without the change", "dim"))
    if not proof.witnesses:
        yield row(("○ no witness ", "warn"), ("nothing fails without the change and passes with it", "dim"))
    for sign, style, texts in (("⚠", "warn", proof.loosened), ("✗", "bad", proof.objections)):
        for each in texts:
            yield from wrapped(each, scene.room, style, lead=f"{sign} ")
    for each in (*proof.missing, *proof.limits):
        yield from wrapped(each, scene.room, "dim", lead="· ")
