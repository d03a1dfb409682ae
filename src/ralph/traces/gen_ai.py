"""The attributes of an agent's session, as OpenTelemetry's conventions for generative AI name them. Pure.

The conventions are still in development, so their names are spelled here and not imported: a package that renames one
must not stop a trace. No prompt, answer, command or path is among them.
"""

from __future__ import annotations

from ralph.core.agent import Init, Outcome, Tokens
from ralph.core.events import AgentStarted
from ralph.core.text import one_line
from ralph.traces.span import Attribute

_BY_AGENT = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}
_BY_MODEL = {
    "claude": "anthropic",
    "gpt-": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "gcp.gemini",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "deepseek": "deepseek",
}


def provider(agent: str, model: str) -> str:
    """By the model's name, which says more than the client's; a client of its own makes counts as its provider."""
    named = model.rpartition("/")[2].lower()
    return next((name for start, name in _BY_MODEL.items() if named.startswith(start)), _BY_AGENT.get(agent, agent))


def started(event: AgentStarted, agent: str, model: str) -> dict[str, Attribute | None]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.provider.name": provider(agent, model),
        "gen_ai.request.model": model,
        "ralph.step": event.step,
        "ralph.prompt.characters": event.prompt,
    }


def introduced(event: Init) -> dict[str, Attribute | None]:
    """What the client says of itself."""
    return {
        "gen_ai.response.model": one_line(event.model, 100),
        "gen_ai.conversation.id": one_line(event.session, 100),
        "gen_ai.agent.version": one_line(event.version, 60),
    }


def ended(agent: str, outcome: Outcome) -> dict[str, Attribute | None]:
    return {
        "gen_ai.provider.name": provider(agent, outcome.model),
        "gen_ai.response.model": outcome.model,
        "ralph.turns": outcome.turns,
        "ralph.tool_calls": outcome.tools,
        "ralph.denied_calls": len(outcome.denials),
        **used(outcome.used),
    }


def used(tokens: Tokens) -> dict[str, Attribute | None]:
    """By the conventions the input includes what was read from a cache or written to it."""
    if not tokens.total:
        return {}
    return {
        "gen_ai.usage.input_tokens": tokens.input + tokens.cache_read + tokens.cache_write,
        "gen_ai.usage.output_tokens": tokens.output,
        "gen_ai.usage.cache_read.input_tokens": tokens.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": tokens.cache_write,
    }
