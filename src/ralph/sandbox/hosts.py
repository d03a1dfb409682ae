"""Which hosts can be reached from inside a sandbox: names, ports, and one word for each package registry. Pure.

A plain name means port 443 of a host on the internet: it never leads to a private address. An entry with a port and
without a wildcard means exactly that service, wherever it is. Wildcards and registries never lead to private addresses.
The proxy imports this at every start, so it has no values of msgspec, and errors are imported when one is raised.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from ralph.core.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from ralph.core.errors import ConfigError

REGISTRIES = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org",),  # `npm audit` asks the same host
    "crates": ("index.crates.io", "static.crates.io", "crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "debian": ("deb.debian.org:80,443", "security.debian.org:80,443"),
}
"""Package registries by one word, each with the hosts that its client contacts.

`go` does not contain storage.googleapis.com, to which proxy.golang.org redirects for large modules (golang/go#52908):
anybody can have a bucket there, so a program inside could send data to its author.
"""
LOOPBACK = "localhost"
"""The one name of this machine's own loopback: 127.0.0.1 and ::1 are compared as this."""
USUAL_PORTS = frozenset({443})
_LONGEST_NAME = 253
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = lazy_pattern(rf"{_LABEL}(\.{_LABEL})*")
_NUMERIC = lazy_pattern(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
"""What `inet_aton` takes for an address, and what looks like one: `127.1`, `0x7f000001`, `2130706433`."""
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"),
            "168.63.129.16/32",  # Azure's own service for its virtual machines, at an address that looks public
            *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
            "fec0::/10",
        ),
    )
)
"""Besides what `ipaddress` says, whose opinion differs between versions of Python."""
_PRIVATE = "the private address"
_NAT64 = ip_network("64:ff9b::/96")


class Host(NamedTuple):
    """One entry of the list: a name, `*.` and a name for all hosts below it, or an address; and the ports."""

    pattern: str
    ports: frozenset[int] = USUAL_PORTS
    is_service: bool = False
    """The user wrote this very host with a port: it may have a private address."""

    def is_for(self, name: str) -> bool:
        return name.endswith(self.pattern[1:]) if self.pattern.startswith("*.") else name == self.pattern

    def matches(self, name: str, port: int) -> bool:
        return port in self.ports and self.is_for(name)


def parse_hosts(entries: Iterable[str]) -> tuple[Host, ...]:
    """The list of `sandbox.allow_hosts`. Raises ConfigError."""
    hosts: list[Host] = []
    for entry in _entries(entries):
        if entry in REGISTRIES:
            hosts += [_host(one)._replace(is_service=False) for one in REGISTRIES[entry]]
        else:
            hosts.append(_host(entry))
    return tuple(dict.fromkeys(hosts))


def _entries(entries: Iterable[str]) -> Iterator[str]:
    """`example.org:80,443` arrives in two parts if the list was written as one string with commas."""
    joined: list[str] = []
    for entry in (entry.strip() for entry in entries):
        if joined and _is_port(entry) and _is_port(joined[-1].rpartition(":")[2].rpartition(",")[2]):
            joined[-1] += f",{entry}"
        elif entry:
            joined.append(entry)
    yield from (entry.lower() if entry.lower() in REGISTRIES else entry for entry in joined)


def _host(entry: str) -> Host:
    """Raises ConfigError."""
    if "://" in entry or "/" in entry:
        raise _error(entry, "is not a host name", "write only the host, without https:// and without a path")
    name, ports = _parted(entry)
    if ports is not None and not all(map(_is_port, ports.split(","))):
        raise _error(entry, "has a port that is not a number from 1 to 65535")
    numbers = frozenset(map(int, ports.split(","))) if ports else USUAL_PORTS
    if name.startswith("*"):
        return Host(_wildcard(entry, name), numbers)
    name = canonical(name)
    if is_address(name):
        _check_address(entry, name, ports)
    elif not _is_name(name):
        raise _error(entry, "is not a host name")
    elif name in REGISTRIES:
        raise _error(entry, "is a package registry, which takes no port", f"write {name}")
    elif "." not in name and not ports:
        raise _error(entry, "is neither a registry nor a host with a port")
    return Host(name, numbers, is_service=bool(ports))


def _wildcard(entry: str, name: str) -> str:
    below = canonical(name[2:])
    if name == "*":
        raise _error(entry, "is every host", "to allow all, set sandbox.network to open")
    if not name.startswith("*.") or not _is_name(below) or is_address(below):
        raise _error(entry, "is not a host name", "a wildcard stands for the first part of a name: *.example.org")
    if "." not in below:
        raise _error(entry, "allows too much", "a wildcard needs two names after it: *.example.org")
    return f"*.{below}"


def _check_address(entry: str, name: str, ports: str | None) -> None:
    address = _address(name)
    if address is None:
        raise _error(entry, "is an address in an unusual form", "write it as 127.0.0.1:5432")
    if not ports:
        raise _error(entry, "is an address without a port", f"write {shown(name, 8080)}, for instance")
    if address.is_unspecified or address.is_multicast:
        raise _error(entry, "is not the address of a host", f"for this machine, write localhost:{ports}")


def _error(entry: str, problem: str, hint: str = "") -> ConfigError:
    from ralph.core.errors import ConfigError

    usual = f"use example.org, *.example.org, example.org:8443, localhost:5432, or one of {', '.join(REGISTRIES)}"
    return ConfigError(f"sandbox.allow_hosts: {entry[:100]!r} {problem}", hint=hint or usual)


def _parted(entry: str) -> tuple[str, str | None]:
    """Name and ports. `[::1]:80`; an IPv6 address without brackets has no port."""
    if entry.startswith("[") and "]" in entry:
        name, _, rest = entry[1:].partition("]")
        return name, rest[1:] if rest.startswith(":") else (rest or None)
    if entry.count(":") > 1:
        return entry, None
    name, colon, ports = entry.partition(":")
    return name, ports if colon else None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def canonical(name: str) -> str:
    """A host as it is compared: lower case, ASCII, without the dot of the root; an address in its shortest form."""
    name = name.strip().removesuffix(".").lower()
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError:
            return name
    address = _address(name.strip("[]"))
    if address is None:
        return name
    return LOOPBACK if str(address) in ("127.0.0.1", "::1") else str(address)


def shown(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def is_address(name: str) -> bool:
    """A bare address, in any form that a resolver accepts. It says nothing about who is behind it."""
    bare = name.strip("[]").partition("%")[0]
    return _address(bare) is not None or _NUMERIC.fullmatch(bare) is not None


def why_refused(name: str, port: int, hosts: Sequence[Host]) -> str:
    """Why a connection is not allowed; empty if it is."""
    name = canonical(name)
    if not _is_name(name) and not is_address(name):
        return "not a host name"
    if any(host.matches(name, port) for host in hosts):
        return ""
    if any(host.is_for(name) for host in hosts):
        return f"port {port} is not on the list"
    if is_address(name):
        return "an address instead of a host name"
    return "the host is not on the list"


def why_not_there(name: str, port: int, addresses: Sequence[str], hosts: Sequence[Host]) -> str:
    """Why a host of the list may not be reached at the addresses that its name leads to; empty if it may.

    One private address among public ones is a trick as well.
    """
    name = canonical(name)
    is_service = any(host.is_service and host.matches(name, port) for host in hosts)
    if is_service and (name == LOOPBACK or is_address(name)):
        return ""
    for address in addresses:
        if is_service and _is_reserved(address):
            return f"its name leads to {address}, which no host of a network has"
        if not is_service and not is_public(address):
            return f"its name leads to {_PRIVATE} {address}"
    return ""


def is_public(address: str) -> bool:
    """Whether an address is outside: not this machine or its network, a cloud's metadata service, a multicast group."""
    here = ip_address(address.partition("%")[0])
    inner = _embedded(here)
    if inner is not None:
        return is_public(str(inner))
    return here.is_global and not here.is_multicast and not any(here in network for network in _NOT_PUBLIC)


def _is_reserved(address: str) -> bool:
    """Addresses that only a literal entry leads to: the metadata services of clouds are among them."""
    here = ip_address(address.partition("%")[0])
    here = _embedded(here) or here
    is_metadata = str(here) in ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
    return here.is_link_local or here.is_multicast or here.is_unspecified or is_metadata


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, 6to4, NAT64."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def forwards(entries: Iterable[str]) -> tuple[int, ...]:
    """Ports of services on this machine's loopback that the list allows."""
    return tuple(sorted({port for host in parse_hosts(entries) if host.pattern == LOOPBACK for port in host.ports}))


def registry_of(name: str, port: int) -> str:
    """The word for the package registry that a host belongs to, or an empty string."""
    return next((word for word in REGISTRIES if not why_refused(name, port, parse_hosts((word,)))), "")


def entry_for(name: str, port: int, reason: str = "") -> str:
    """The entry of the list that would allow what was refused: a registry, a name, or a name and a port."""
    name = canonical(name)
    if word := registry_of(name, port):
        return word
    is_plain = port in USUAL_PORTS and "." in name and not is_address(name) and _PRIVATE not in reason
    return name if is_plain else shown(name, port)


def _is_metadata(name: str) -> bool:
    """A link-local address: where clouds tell machines their secrets. Nobody is offered a command that allows it."""
    try:
        return ip_address(name.strip("[]").partition("%")[0]).is_link_local
    except ValueError:
        return name.startswith("metadata.")


def command_to_allow(name: str, port: int, reason: str, present: Sequence[str]) -> str:
    """`ralph config set` sets the whole list, so this repeats what is on it."""
    return command_to_allow_all([(name, port, reason)], present)


def command_to_allow_all(refused: Iterable[tuple[str, int, str]], present: Sequence[str]) -> str:
    """One command for several hosts: name, port and why it was refused."""
    offered = [one for one in refused if not _is_metadata(one[0])]
    entries = list(dict.fromkeys((*present, *(entry_for(*one) for one in offered))))
    value = json.dumps(entries) if any("[" in entry for entry in entries) else ",".join(entries)
    return f"ralph config set sandbox.allow_hosts {shlex.quote(value)}"
