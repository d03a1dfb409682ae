"""Addresses that are secrets themselves, made fit to be shown: a webhook's path is its password. Pure."""

from __future__ import annotations

import hashlib
import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^@/?#]*@)?([^/?#]*)")
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_WITH_HOST = frozenset({"http", "https", "json", "jsons", "xml", "xmls", "form", "forms"})
"""Schemes whose first part is a host; for many a service it is a token."""


def masked(address: str) -> str:
    """The scheme, and the host where that is one. What only names environment variables stays as it is."""
    if not _REFERENCE.sub("", address):
        return address
    found = _ADDRESS.match(address)
    if found is None:
        return "…"
    scheme, host = found[1].lower(), found[2]
    return f"{scheme}://{host}/…" if scheme in _WITH_HOST and host else f"{scheme}://…"


def sealed(written: str) -> str:
    """For a person to agree to: masked, with the variables it would give away, and a seal that differs for each."""
    names = sorted(set(_REFERENCE.findall(written)))
    if not _REFERENCE.sub("", written):
        return written
    seal = hashlib.sha256(written.encode()).hexdigest()[:16]
    return f"{masked(written)}{' with ' + ', '.join(names) if names else ''} (sha256 {seal})"
