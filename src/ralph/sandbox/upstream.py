"""The user's own proxy, through which that of the sandbox connects: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

VARIABLES = ("https_proxy", "http_proxy", "all_proxy", "no_proxy")


class Upstream(NamedTuple):
    host: str
    port: int
    is_tls: bool = False
    login: str = ""

    def fields(self) -> list[tuple[str, str]]:
        return [("Proxy-Authorization", f"Basic {self.login}")] if self.login else []


class Upstreams(NamedTuple):
    for_tunnels: Upstream | None = None
    for_requests: Upstream | None = None
    direct: tuple[str, ...] = ()
    """Hosts of NO_PROXY."""

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Upstreams:
        """From environment variables; those in lower case win. A SOCKS proxy is not supported, and left out."""

        def value(name: str) -> str:
            return env.get(name) or env.get(name.upper()) or ""

        other = _parse(value("all_proxy"))
        direct = tuple(one.strip().lower() for one in value("no_proxy").replace(" ", ",").split(",") if one.strip())
        return cls(_parse(value("https_proxy")) or other, _parse(value("http_proxy")) or other, direct)

    def for_host(self, name: str, port: int, *, is_tunnel: bool) -> Upstream | None:
        if any(_is_direct(entry, name, port) for entry in self.direct):
            return None
        return self.for_tunnels if is_tunnel else self.for_requests


DIRECT = Upstreams()


def proxy_variables(env: Mapping[str, str]) -> dict[str, str]:
    names = (*VARIABLES, *map(str.upper, VARIABLES))
    return {name: env[name] for name in names if env.get(name)}


def _parse(text: str) -> Upstream | None:
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
        port = url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        return None
    if url.scheme not in ("http", "https") or not url.hostname:
        return None
    login = f"{unquote(url.username or '')}:{unquote(url.password or '')}" if url.username else ""
    return Upstream(url.hostname, port, url.scheme == "https", b64encode(login.encode()).decode())


def _is_direct(entry: str, name: str, port: int) -> bool:
    """`*`, `example.org` (and all below it), `.example.org`, `example.org:8080`, `10.0.0.0/8`."""
    if entry == "*":
        return True
    try:
        return ip_address(name) in ip_network(entry, strict=False)
    except ValueError:
        pass
    host, colon, number = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    host = host.removeprefix("*").lstrip(".")
    return bool(host) and (name == host or name.endswith(f".{host}")) and (not colon or number == str(port))
