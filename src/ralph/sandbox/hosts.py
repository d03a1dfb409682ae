"""Which hosts can be reached from inside a sandbox: patterns, ports, and words for package registries. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from msgspec import Struct

from ralph.core.errors import ConfigError

REGISTRIES = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org",),
    "crates": ("index.crates.io", "static.crates.io", "crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "debian": ("deb.debian.org:80,443", "security.debian.org:80,443"),
}
"""Package registries by one word, each with the hosts that its client contacts."""
USUAL_PORTS = frozenset({443})
_PATTERN = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}")
"""What `inet_aton` takes for an address: `127.1`, `0x7f000001`, `2130706433`."""


class Host(Struct, frozen=True):
    """One entry of the list: a name, or `*.` and a name for all hosts below it, and the ports."""

    pattern: str
    ports: frozenset[int] = USUAL_PORTS

    def matches(self, name: str, port: int) -> bool:
        is_named = name.endswith(self.pattern[1:]) if self.pattern.startswith("*.") else name == self.pattern
        return is_named and port in self.ports


def parse_hosts(entries: Iterable[str]) -> tuple[Host, ...]:
    """The list of `sandbox.allow_hosts`. Raises ConfigError."""
    hosts: list[Host] = []
    for entry in entries:
        for one in REGISTRIES.get(entry, (entry,)):
            name, _, ports = one.partition(":")
            name = normal(name)
            is_name = _PATTERN.fullmatch(name) and "." in name and not is_address(name)
            if not is_name or (ports and not all(_is_port(part) for part in ports.split(","))):
                raise ConfigError(
                    f"sandbox.allow_hosts: {entry!r} is not a host name",
                    hint=f"use example.org, *.example.org, example.org:8443, or one of {', '.join(REGISTRIES)}",
                )
            hosts.append(Host(name, frozenset(map(int, ports.split(","))) if ports else USUAL_PORTS))
    return tuple(dict.fromkeys(hosts))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) < 65536


def normal(name: str) -> str:
    """A host name as it is compared: lower case, ASCII, without the dot of the root."""
    name = name.strip().removesuffix(".").lower()
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name


def is_address(name: str) -> bool:
    """A bare address, in any form that a resolver accepts. It says nothing about who is behind it."""
    bare = name.strip("[]").partition("%")[0]
    try:
        ip_address(bare)
    except ValueError:
        return bool(_NUMERIC.fullmatch(bare))
    return True


def why_refused(name: str, port: int, hosts: Iterable[Host]) -> str:
    """Why a connection is not allowed; empty if it is."""
    name = normal(name)
    if is_address(name):
        return "an address instead of a host name"
    if any(host.matches(name, port) for host in hosts):
        return ""
    if any(host.matches(name, usual) for host in hosts for usual in host.ports):
        return f"port {port} is not on the list"
    return "the host is not on the list"


def is_public(address: str) -> bool:
    """Whether an address is outside: not this machine or its network, a cloud's metadata service, a multicast group."""
    found = ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    if mapped is not None and not mapped.is_global:
        return False
    return found.is_global and not found.is_multicast
