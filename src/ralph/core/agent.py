"""Typed events of an agent's output, and their totals. Every adapter reads its client's output into these."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Trouble(StrEnum):
    """Why an agent could not work, classified by the reaction it calls for."""

    LIMIT = "limit"
    TRANSPORT = "transport"
    EMPTY = "empty"
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    """The account has no credit left."""
    REFUSED = "refused"
    """The service refused the key of an agent that had worked before in this run: tried once more after a pause."""
    MODEL = "model"
    PERMISSION = "permission"
    BUDGET = "budget"
    CONTEXT = "context"
    UNGUARDED = "unguarded"
    """The client ran without Ralph's hooks and was stopped."""
    SETTINGS = "settings"
    """A template or a step is not valid, so no prompt could be built."""
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
    """The client's version, where it reports one."""
    note: str = ""
    """A note about this version of the client."""


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    text: str
    more: bool = False
    """True for a further line of the previous text, from an agent that prints line by line."""


class ToolUse(Struct, frozen=True, tag="tool_use", omit_defaults=True):
    name: str
    summary: str = ""
    id: str = ""
    path: str = ""
    """The file that it names. Not recorded."""
    command: str = ""
    """The shell command. Not recorded."""


class ToolResult(Struct, frozen=True, tag="tool_result"):
    id: str = ""
    ok: bool = True
    text: str = ""
    """The beginning of the tool's result."""
    seconds: float | None = None
    """How long the call took, where the client's stream has times."""


class Usage(Struct, frozen=True, tag="usage"):
    """The number of tokens the model has just read: the size of the context, not its cost."""

    context: int
    """0: not known from this event, such as that of a sub-agent."""
    tokens: Tokens = Tokens()
    """What was read and written since the event before, for a session that never reports a result. Text that the
    model wrote is estimated: the stream reports its tokens only at the end."""


class Limit(Struct, frozen=True, tag="limit"):
    """`allowed` reports how much is left; only `rejected` stops work."""

    rejected: bool
    resets_at: float | None = None
    kind: str = ""
    utilization: float | None = None


class Compacting(Struct, frozen=True, tag="compacting"):
    """The client is compacting its context, which can take minutes without output; or it has finished."""

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
    """`protected`: the client protects the file; `rule`: a rule of the project; else it was not granted."""
    remedy: str = ""
    """How to allow it."""


class ModelUse(Struct, frozen=True):
    """What one model of a session used, as the client reports it."""

    model: str
    tokens: Tokens = Tokens()
    usd: float = 0


class Result(Struct, frozen=True, tag="result"):
    ok: bool
    text: str = ""
    trouble: Trouble | None = None
    detail: str = ""
    cost_usd: float | None = None
    tokens: Tokens = Tokens()
    turns: int = 0
    models: tuple[str, ...] = ()
    uses: tuple[ModelUse, ...] = ()
    """The cost by model, where the client reports it."""
    window: int = 0
    """The size of the model's context window in tokens, where the client reports it."""
    note: str = ""
    """A note about how the session ended."""
    structured: str = ""
    """The answer that follows the requested schema, as JSON."""
    denials: tuple[Denial, ...] = ()
    """The calls that were refused, by the client or by Ralph."""
    gives_up: bool = False
    """The client would go on retrying in vain: it is ended now."""


AgentEvent = Init | Text | ToolUse | ToolResult | Usage | Limit | Compacting | Retry | Result


class Outcome(Struct, frozen=True):
    """The events of one agent process, summed up as they arrive."""

    finished: bool = False
    """A final result was seen."""
    ok: bool = False
    text: str = ""
    """The end of the agent's last message."""
    promised: bool = False
    """The completion tag was alone on a line of its last message: a claim."""
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
    """The calls the client refused, without those that Ralph's hook denied."""
    tests_failed: str = ""
    """The command of its last test run, if that failed. Known only for clients with hooks."""
    heard: Tokens = Tokens()
    """Tokens read and written by the model since the last result: all that is known about a session that was
    stopped."""
    uses: tuple[ModelUse, ...] = ()
    agent: str = ""
    """Whose process it was; empty in journals of older versions."""

    @property
    def used(self) -> Tokens:
        """All tokens that are known, whether or not the session reported a result."""
        return self.tokens + self.heard


_KEPT = 4000


def add(outcome: Outcome, event: AgentEvent, promise: str) -> Outcome:
    change = msgspec.structs.replace
    match event:
        case Text(text, more=more):
            said = f"{outcome.text}\n{text}" if more and outcome.text else text
            return change(outcome, text=said[-_KEPT:], promised=is_promised(said[-_KEPT:], promise))
        case Init(model=model, note=note):
            return change(outcome, model=model or outcome.model, note=note or outcome.note)
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
    """One process can report several results: costs add up, and the last one defines how it ended."""
    costs = [cost for cost in (outcome.cost_usd, event.cost_usd) if cost is not None]
    is_limit = outcome.trouble is Trouble.LIMIT and not event.ok
    return msgspec.structs.replace(
        outcome,
        finished=True,
        ok=event.ok,
        text=event.text[-_KEPT:] or outcome.text,
        promised=is_promised(event.text, promise) if event.text else outcome.promised,
        trouble=Trouble.LIMIT if is_limit else event.trouble,
        detail=event.detail or (outcome.detail if is_limit else ""),
        model=event.models[0] if event.models else outcome.model,
        tokens=outcome.tokens + event.tokens,
        cost_usd=sum(costs) if costs else None,
        turns=outcome.turns + event.turns,
        window=event.window or outcome.window,
        note=event.note or outcome.note,
        heard=Tokens(),
        uses=(*outcome.uses, *event.uses),
        structured=event.structured or outcome.structured,
        denials=(*outcome.denials, *event.denials),
    )


def is_promised(text: str, promise: str) -> bool:
    """Whether the tag is alone on a line, outside code blocks. A quotation of the prompt is no claim."""
    if not promise or promise not in text:
        return False
    fence = ""
    for line in text.splitlines():
        bare = line.strip()
        if mark := next((mark for mark in ("```", "~~~") if bare.startswith(mark)), ""):
            fence = mark if not fence else "" if mark == fence else fence
        elif bare == promise.strip() and not fence and not line.startswith(("    ", "\t")):
            return True
    return False
