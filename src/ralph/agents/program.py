"""Find the program of an agent."""

from __future__ import annotations

from pathlib import Path

from ralph.core.agent_traits import AgentTraits
from ralph.core.errors import SetupError
from ralph.core.ports import Session
from ralph.host.process import programs


def which(name: str, cwd: Path, path: str) -> str | None:
    """A name with a slash is a file relative to the workspace. A bare name is searched on `path`, outside of it."""
    if "/" in name:
        return programs.which(str(cwd / Path(name).expanduser()), path)
    return programs.which(name, path, outside=cwd)


def not_found(name: str, cwd: Path, path: str, message: str, hint: str) -> SetupError:
    """The error, which differs if `path` finds the program only inside the workspace."""
    if "/" not in name and (inside := programs.which(name, path)):
        return SetupError(
            f"{name} is on PATH only inside the workspace ({inside}), where it is not searched",
            hint=f"to use this one, set agent.command to [{inside}] and run `ralph trust`",
        )
    return SetupError(message, hint=hint)


def find_client(session: Session, path: str, title: str, traits: AgentTraits) -> str:
    """The program that agent.command names, or the client's own. Raises SetupError with how to install it."""
    name = session.command[0] if session.command else traits.program
    if found := which(name, session.cwd, path):
        return found
    if session.command:
        missing, hint = f"agent program {name} not found", "correct agent.command, or remove it"
    else:
        missing, hint = f"{title} is not installed: {name} not found on PATH", f"run `{traits.install}`"
    raise not_found(name, session.cwd, path, missing, hint)


def host_of(url: str) -> str:
    """Host and port of an address, as in `sandbox.allow_hosts`."""
    from urllib.parse import urlsplit  # few settings have an address

    parts = urlsplit(url if "://" in url else f"https://{url}")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{host}:{parts.port or (80 if parts.scheme == 'http' else 443)}"


def argument(text: str) -> str:
    """As one argument of a command line: the system cannot pass a NUL."""
    return text.replace("\0", "")
