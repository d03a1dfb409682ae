"""The table of agents. Third-party agents register with the entry point group `ralph.agents`."""

from __future__ import annotations

from typing import cast

from ralph.core.ports import Agent
from ralph.core.registry import Registry

AGENTS = Registry(
    "agent",
    {
        "aider": "ralph.agents.aider",
        "claude": "ralph.agents.claude",
        "cline": "ralph.agents.cline",
        "codex": "ralph.agents.codex",
        "copilot": "ralph.agents.copilot",
        "droid": "ralph.agents.droid",
        "gemini": "ralph.agents.gemini",
        "goose": "ralph.agents.goose",
        "opencode": "ralph.agents.opencode",
        "pi": "ralph.agents.pi",
        "qwen": "ralph.agents.qwen",
        "scripted": "ralph.agents.scripted",
        "command": "ralph.agents.command",
    },
    group="ralph.agents",
    protocol=Agent,
)


def agent(name: str) -> Agent:
    return cast(Agent, AGENTS.get(name))
