"""Whether a run sends traces: the standard variables of OpenTelemetry say so. Imports nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from ralph.core.text import one_line
from ralph.core.trace_context import TraceContext, context_of

INSTALL = "pip install 'ralph-loop-engine[otel]'"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN = "http/protobuf"
_PACKAGE = "exporter/otlp/proto/http"


def is_wanted(env: Mapping[str, str]) -> bool:
    exporters = {name.strip() for name in env.get("OTEL_TRACES_EXPORTER", "").lower().split(",")} - {""}
    return (
        any(env.get(name, "").strip() for name in ENDPOINTS)
        and env.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
        and (not exporters or "otlp" in exporters)
    )


def obstacle(env: Mapping[str, str]) -> str:
    """Why no trace can be sent although one is wanted, and what to do; empty: nothing is in the way."""
    if not is_installed():
        return f"no traces are sent: OpenTelemetry is not installed; {INSTALL}"
    name, address = _address(env)
    if not is_url(address):
        return f"no traces are sent: {name} is not a URL such as http://localhost:4318"
    protocol = next((name for name in _PROTOCOLS if env.get(name, "").strip()), "")
    if protocol and (value := env[protocol].strip().lower()) != _SPOKEN:
        return (
            f"no traces are sent: {protocol} is {one_line(value, 40)}, and Ralph sends {_SPOKEN}; set {_PROTOCOLS[0]} "
            f"to {_SPOKEN}, and {ENDPOINTS[0]} to the receiver's address for HTTP (usually port 4318, /v1/traces)"
        )
    return ""


def context(run: str, env: Mapping[str, str]) -> TraceContext | None:
    """None: the run sends no trace, because nobody wants one, or because the caller does not record its own."""
    if not is_wanted(env):
        return None
    known = context_of(run, env)
    return known if known.is_sampled else None


def is_installed() -> bool:
    """Looked up without importing it."""
    found = find_spec("opentelemetry")
    return any(Path(folder, _PACKAGE).is_dir() for folder in (found.submodule_search_locations or () if found else ()))


def endpoint(env: Mapping[str, str]) -> str:
    """Where traces go, for people: without a password or a key."""
    return shown(_address(env)[1])


def _address(env: Mapping[str, str]) -> tuple[str, str]:
    """The variable that counts, and its value."""
    return next(((name, env[name].strip()) for name in ENDPOINTS if env.get(name, "").strip()), ("", ""))


def is_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown(address: str) -> str:
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return "the receiver"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if host else "the receiver"
