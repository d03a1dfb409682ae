#!/usr/bin/env python3
"""The client `acme` of examples/agent-plugin: a loop around a model with chat completions, and one tool, a shell.

It knows the price of its own model only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"type": "function", "function": {"name": "shell", "description": "Run a command.", "parameters": SHELL}}]


def tell(**record: Any) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def ask(model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    url = os.environ["ACME_BASE_URL"] + "/v1/chat/completions"
    head = {"content-type": "application/json", "authorization": f"Bearer {os.environ['ACME_API_KEY']}"}
    data = json.dumps({"model": model, "messages": messages, "tools": TOOLS}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, head), timeout=100) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def work(model: str, messages: list[dict[str, Any]]) -> int:
    used = {"input": 0, "output": 0, "turns": 0}
    try:
        while True:
            answer = ask(model, messages)
            message, usage = answer["choices"][0]["message"], answer["usage"]
            turns, read, wrote = used["turns"] + 1, usage["prompt_tokens"], usage["completion_tokens"]
            used = {"input": used["input"] + read, "output": used["output"] + wrote, "turns": turns}
            messages.append(message)
            if message.get("content"):
                tell(type="text", text=message["content"])
            if not message.get("tool_calls"):
                tell(type="end", ok=True, **used, **({"usd": 0.001 * turns} if model == "acme-1" else {}))
                return 0
            for call in message["tool_calls"]:
                command = json.loads(call["function"]["arguments"])["command"]
                tell(type="tool", name="shell", command=command)
                done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
    except urllib.error.HTTPError as error:
        said = json.load(error)["error"]
        if said["type"] in ("usage_limit_reached", "insufficient_quota"):
            tell(type="limit", resets_at=said.get("resets_at"))
        tell(type="end", ok=False, status=error.code, error=said["message"], **used)
    except (OSError, ValueError, KeyError) as error:
        tell(type="end", ok=False, error=str(error), **used)
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser("acme")
    parser.add_argument("--version", action="version", version="acme 1.2.0")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", default="acme-1")
    sys.exit(work(parser.parse_args().model, [{"role": "user", "content": sys.stdin.read()}]))
