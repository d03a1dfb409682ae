"""Real clients other than Claude Code, as the agent `command` of a project, on the scripted model.

`scripts/fetch_clients.py` installs them. What each needs of its user's home and environment is what a sandbox must let
through.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NamedTuple

from support.clients import Project
from support.tools import OTHER_CLIENTS

KEY = "test-key"


class OtherClient(NamedTuple):
    arguments: tuple[str, ...]
    """After the program. The prompt is on stdin."""
    env: dict[str, str]
    """What its user has set; `agent.env` passes it on."""
    files: dict[str, str]
    """In its user's home folder; `sandbox.files` lists them."""


CLIENTS = {
    "codex": OtherClient(
        ("exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"),
        {},
        {
            ".codex/config.toml": 'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\n'
            'name = "scripted"\nbase_url = "{address}/v1"\nwire_api = "responses"\nrequires_openai_auth = true\n',
            ".codex/auth.json": json.dumps({"OPENAI_API_KEY": KEY}),
        },
    ),
    "goose": OtherClient(
        ("run", "-q", "--no-session", "--output-format", "stream-json", "-i", "-"),
        {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "scripted",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_API_KEY": KEY,
            "OPENAI_HOST": "{address}",
        },
        {},
    ),
}


def project_of(
    folder: Path, name: str, stories: int, *, program: str = "", **config: Any
) -> tuple[Project, dict[str, str]]:
    """A project with this client at otherwise default settings, and the environment of its user."""
    client = CLIENTS[name]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    env = {key: value.replace("{address}", address) for key, value in client.env.items()}
    agent = {"name": "command", "command": [program or str(OTHER_CLIENTS / name), *client.arguments], "env": [*env]}
    sandbox = {"allow_hosts": [f"127.0.0.1:{port}"], "files": [f"~/{path}" for path in client.files]}
    project = Project(folder, stories, agent=agent, sandbox=sandbox, **config)
    for path, text in client.files.items():
        file = project.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{address}", address))
    return project, env | {"MODEL_PORT": str(port)}


def run(command: str) -> dict[str, Any]:
    """A turn: the client's tool for commands runs it."""
    return {"run": command}
