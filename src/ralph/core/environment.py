"""The environment that agents and checks get: an allow-list and what the settings add. Pure.

What is left out on purpose: `GIT_*` (it would point git at another repository), `CLAUDECODE` (a nested client
behaves differently), and every secret that nobody asked to pass on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_ALLOWED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "TMPDIR", "TEMP", "TMP", "PWD", "EDITOR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "NVM_DIR", "PYENV_ROOT", "JAVA_HOME", "GOPATH", "GOROOT",
    "GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA",
    "LOCALAPPDATA", "USERPROFILE", "RALPH_STATE_HOME", "CI",
)  # fmt: skip
_NEVER = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "RALPH_TRUST", "RALPH_NONCE")


def child_environment(
    parent: Mapping[str, str], wanted: Iterable[str] = (), added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A name in `wanted` that ends with `*` stands for all names that begin so."""
    names = set(_ALLOWED)
    beginnings = ["LC_"]
    for name in wanted:
        if name.endswith("*"):
            beginnings.append(name[:-1])
        else:
            names.add(name)
    kept = {
        name: value
        for name, value in parent.items()
        if (name in names or name.startswith(tuple(beginnings))) and not _is_forbidden(name)
    }
    return kept | dict(added or {})


def _is_forbidden(name: str) -> bool:
    return name in _NEVER or name.startswith("GIT_")
