"""What an agent says, as typed events, and what they add up to. Every adapter reads its client into these."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Trouble(StrEnum):
    """Why an agent could not do its work, by the reaction it asks for."""

    LIMIT = "limit"
    TRANSPORT = "transport"
    EMPTY = "empty"
    AUTHENTICATION = "authentication"
    MODEL = "model"
    PERMISSION = "permission"
    BUDGET = "budget"
    CONTEXT = "context"
    UNGUARDED = "unguarded"
    """The client was at work without Ralph's hooks, and was ended."""
    SETTINGS = "settings"
    """A template or a step cannot be used as it is written, so no agent could be told anything."""
    OTHER = "other"


class Tokens(Struct, frozen=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


class Init(Struct, frozen=True, tag="init"):
    model: str = ""
    session: str = ""
    version: str = ""
    """Of the client, where it says so."""
    note: str = ""
    """Something about this version that is worth knowing."""


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    text: str
    more: bool = False
    """A further line of what was said before: of an agent that speaks in lines."""


class ToolUse(Struct, frozen=True, tag="tool_use"):
    name: str
    summary: str = ""
    id: str = ""


class ToolResult(Struct, frozen=True, tag="tool_result"):
    id: str = ""
    ok: bool = True
    text: str = ""
    """The beginning of what the tool returned."""
    seconds: float | None = None
    """How long the call took, where the client's stream has times."""


class Usage(Struct, frozen=True, tag="usage"):
    """How much the model has just read: the size of the context, not what it cost."""

    context: int
    tokens: Tokens = Tokens()
    """The same by class, for a session that never gets to its result."""


class Limit(Struct, frozen=True, tag="limit"):
    """`allowed` is news about how much is left; only `rejected` stops work."""

    rejected: bool
    resets_at: float | None = None
    kind: str = ""
    utilization: float | None = None


class Compacting(Struct, frozen=True, tag="compacting"):
    """The client makes its context smaller, which can take minutes without a word; or it is done with that."""

    active: bool


class Retry(Struct, frozen=True, tag="retry"):
    attempt: int
    status: int | None = None
    error: str = ""


class Denial(Struct, frozen=True):
    """A tool call that was refused."""

    tool: str
    subject: str = ""
    id: str = ""
    why: str = ""
    """`protected`: the client protects the file itself; `rule`: a rule of the project; else nobody granted it."""
    remedy: str = ""
    """What to do to allow it."""


class Result(Struct, frozen=True, tag="result"):
    ok: bool
    text: str = ""
    trouble: Trouble | None = None
    detail: str = ""
    cost_usd: float | None = None
    tokens: Tokens = Tokens()
    turns: int = 0
    models: tuple[str, ...] = ()
    window: int = 0
    """How many tokens the model can read, where the client says so."""
    note: str = ""
    """Something about the way it ended that is worth knowing."""
    structured: str = ""
    """The answer by the schema it was held to, as JSON."""
    denials: tuple[Denial, ...] = ()
    """The calls that were refused, whoever refused them."""


AgentEvent = Init | Text | ToolUse | ToolResult | Usage | Limit | Compacting | Retry | Result


class Outcome(Struct, frozen=True):
    """The events of one agent process, added up as they come."""

    finished: bool = False
    """A final result was seen."""
    ok: bool = False
    text: str = ""
    """The end of what the agent said last."""
    promised: bool = False
    """The completion tag was in its words: a claim."""
    trouble: Trouble | None = None
    detail: str = ""
    resets_at: float | None = None
    model: str = ""
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    turns: int = 0
    tools: int = 0
    window: int = 0
    note: str = ""
    structured: str = ""
    denials: tuple[Denial, ...] = ()
    """The calls that the client refused, without those that Ralph's hook denied."""
    tests_failed: str = ""
    """The command of its last test run, if that failed. Only a client with hooks tells."""
    heard: Tokens = Tokens()
    """Read by the model since the last result: of a session that was ended, all that is known."""


_KEPT = 4000


def add(outcome: Outcome, event: AgentEvent, promise: str) -> Outcome:
    change = msgspec.structs.replace
    match event:
        case Init(model=model, note=note):
            return change(outcome, model=model or outcome.model, note=note or outcome.note)
        case Text(text, more=more):
            said = f"{outcome.text}\n{text}" if more and outcome.text else text
            return change(outcome, text=said[-_KEPT:], promised=outcome.promised or _has(text, promise))
        case ToolUse():
            return change(outcome, tools=outcome.tools + 1)
        case Usage(tokens=tokens) if tokens.total:
            return change(outcome, heard=outcome.heard + tokens)
        case Limit(rejected=True):
            return change(outcome, trouble=Trouble.LIMIT, resets_at=event.resets_at, detail=event.kind)
        case Result():
            return _finish(outcome, event, promise)
        case _:
            return outcome


def _finish(outcome: Outcome, event: Result, promise: str) -> Outcome:
    """Several results can come from one process: costs add up, the last one says how it ended."""
    costs = [cost for cost in (outcome.cost_usd, event.cost_usd) if cost is not None]
    is_limit = outcome.trouble is Trouble.LIMIT and not event.ok
    return msgspec.structs.replace(
        outcome,
        finished=True,
        ok=event.ok,
        text=event.text[-_KEPT:] or outcome.text,
        promised=outcome.promised or _has(event.text, promise),
        trouble=Trouble.LIMIT if is_limit else event.trouble,
        detail=event.detail or (outcome.detail if is_limit else ""),
        model=event.models[0] if event.models else outcome.model,
        tokens=outcome.tokens + event.tokens,
        cost_usd=sum(costs) if costs else None,
        turns=outcome.turns + event.turns,
        window=event.window or outcome.window,
        note=event.note or outcome.note,
        heard=Tokens(),
        structured=event.structured or outcome.structured,
        denials=(*outcome.denials, *event.denials),
    )


def _has(text: str, promise: str) -> bool:
    return bool(promise) and promise in text
