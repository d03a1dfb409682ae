"""The environment of agents and checks. Pure.

By default (`env: caller`) it is the caller's, because tests and agents need variables such as `DATABASE_URL` and
`OPENAI_API_KEY`. With `env: minimal` it is an allow-list plus what `agent.env` adds. Never passed on: `GIT_*` (they
would point git at another repository), the variables that tell a client it runs inside another one, and Ralph's own,
except those added for the child.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from ralph.core.lazy_pattern import lazy_pattern

_ALLOWED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "TMPDIR", "TEMP", "TMP", "PWD", "EDITOR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "NVM_DIR", "PYENV_ROOT", "JAVA_HOME", "GOPATH", "GOROOT",
    "GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA",
    "LOCALAPPDATA", "USERPROFILE", "RALPH_STATE_HOME", "CI",
)  # fmt: skip
_OWN = ("RALPH_STATE_HOME",)
"""The one Ralph variable a child may see: the state folder."""
_CLIENT_SESSION = frozenset({
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE",
})  # fmt: skip
"""Set by a coding client for its child processes. CLAUDE_CODE_SIMPLE disables hooks."""
NEVER_ASK = {
    "GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_MERGE_AUTOEDIT": "no", "EDITOR": "true", "VISUAL": "true",
    "GIT_PAGER": "cat", "PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1",
}  # fmt: skip
"""Keep whatever an agent or a check starts from waiting for a person: an editor, a pager, a password prompt."""
_SECRET = lazy_pattern(
    r"(?:^|_)(?:KEY|PASS|PWD|CREDS|AUTH|DSN|PAT)(?:_|$)"
    r"|TOKEN(?!S|IZER)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|WEBHOOK",
    re.IGNORECASE,
)
_WITH_PASSWORD = lazy_pattern(r"://[^/\s:@]*:([^/\s@]+)@")
_LONG = 20


def run_marks(run: str) -> tuple[tuple[str, str], ...]:
    """Variables that mark the processes of a run. A later run finds what a killed one left behind by them.

    Checks in the proof checkout carry only the second one: code could behave differently where it sees the first.
    """
    return ("RALPH_RUN", run), ("INVOCATION_ID", hashlib.sha256(f"run {run}".encode()).hexdigest()[:32])


def workers_of(run: str) -> str:
    """The name by which worker processes of a run are marked: they are not agents, and end in their own way."""
    return f"{run}-workers"


def child_environment(
    parent: Mapping[str, str],
    wanted: Iterable[str] = (),
    added: Mapping[str, str] | None = None,
    *,
    everything: bool = False,
) -> dict[str, str]:
    """`everything`: all of the parent's variables that may be passed on; otherwise the allow-list and what is `wanted`.

    A name in `wanted` that ends with `*` matches every name with that prefix. Programs that would wait for a person
    are told not to, unless `wanted` names the variable.
    """
    wanted = tuple(wanted)
    names = set(_ALLOWED)
    prefixes = ["LC_"]
    for name in wanted:
        if name.endswith("*"):
            prefixes.append(name[:-1])
        else:
            names.add(name)
    kept = {
        name: value
        for name, value in parent.items()
        if (everything or name in names or name.startswith(tuple(prefixes))) and not _is_forbidden(name)
    }
    return kept | {name: NEVER_ASK[name] for name in NEVER_ASK.keys() - set(wanted)} | dict(added or {})


def _is_forbidden(name: str) -> bool:
    if name.startswith(("RALPH_", "_RALPH_")):
        return name not in _OWN
    return name.startswith("GIT_") or name in _CLIENT_SESSION


def secret_names(env: Mapping[str, str]) -> list[str]:
    """Names of variables that look like secrets, by name or by a password in a URL. Never a value."""
    return sorted(
        name
        for name, value in env.items()
        if value and name not in ("PWD", "OLDPWD") and (_SECRET.search(name) or _WITH_PASSWORD.search(value))
    )


def secret_values(env: Mapping[str, str]) -> dict[str, str]:
    """Values of such variables, by name, as far as they cannot be mistaken for ordinary text: a word, a number, or a
    path. Of a URL with a password, the password.
    """
    secrets = {}
    for name in secret_names(env):
        value = env[name].strip()
        if url := _WITH_PASSWORD.search(value):
            value = url[1]
        if _is_distinct(value):
            secrets[name] = value
    return secrets


def _is_distinct(value: str) -> bool:
    if len(value) < 8 or len(set(value)) < 5 or value.startswith(("/", "~/", "./", "${")):
        return False
    if value.isdigit() or "://" in value:
        return len(value) >= _LONG and "://" not in value
    is_mixed = any(char.isdigit() for char in value) or (value != value.lower() and value != value.upper())
    return is_mixed if len(value) < _LONG else " " not in value or is_mixed
