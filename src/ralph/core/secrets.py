"""Mask addresses that are secrets, so that they can be shown: the path of a webhook is its password. Pure."""

from __future__ import annotations

import hashlib

from ralph.core.lazy_pattern import lazy_pattern

_ADDRESS = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^@/?#]*@)?([^/?#]*)")
_REFERENCE = lazy_pattern(r"\$\{[^}]*\}")
_WITH_HOST = frozenset({"http", "https", "json", "jsons", "xml", "xmls", "form", "forms"})
"""Schemes whose first part is a host; for many other services it is a token."""


def masked(address: str) -> str:
    """The scheme, and the host if the scheme has one. A value that only names environment variables is left as it
    is.
    """
    if not _REFERENCE.sub("", address):
        return address
    found = _ADDRESS.match(address)
    if found is None:
        return "…"
    scheme, host = found[1].lower(), found[2]
    return f"{scheme}://{host}/…" if scheme in _WITH_HOST and host else f"{scheme}://…"


def sealed(written: str) -> str:
    """For confirmation by the user: masked, with the variables it would reveal, and a digest that differs for each
    value.
    """
    names = sorted(set(_REFERENCE.findall(written)))
    if not _REFERENCE.sub("", written):
        return written
    seal = hashlib.sha256(written.encode()).hexdigest()[:16]
    return f"{masked(written)}{' with ' + ', '.join(names) if names else ''} (sha256 {seal})"
