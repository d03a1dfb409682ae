"""Which hosts a list allows, and where they may lead."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.errors import ConfigError
from ralph.sandbox.hosts import (
    REGISTRIES,
    canonical,
    command_to_allow,
    entry_for,
    forwards,
    is_address,
    is_public,
    parse_hosts,
    registry_of,
    why_not_there,
    why_refused,
)

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=2, max_size=4).map(".".join)
PORTS = st.integers(1, 65535)


@pytest.mark.parametrize(
    ("entry", "name", "port"),
    [
        ("example.org", "example.org", 443),
        ("example.org", "EXAMPLE.ORG.", 443),
        ("Example.Org.", "example.org", 443),
        ("*.example.org", "a.example.org", 443),
        ("*.example.org", "a.b.example.org", 443),
        ("example.org:8443", "example.org", 8443),
        ("example.org:80,443", "example.org", 80),
        ("example.org:80,443", "example.org", 443),
        ("*.example.org:8443", "a.example.org", 8443),
        ("bücher.example", "xn--bcher-kva.example", 443),
        ("xn--bcher-kva.example", "bücher.example", 443),
        ("localhost:5432", "localhost", 5432),
        ("localhost:5432", "127.0.0.1", 5432),
        ("localhost:5432", "::1", 5432),
        ("127.0.0.1:5432", "localhost", 5432),
        ("[::1]:5432", "[0:0::1]", 5432),
        ("10.0.0.5:8080", "10.0.0.5", 8080),
        ("[fd00::5]:8080", "fd00:0::5", 8080),
        ("mirror.corp:8080", "mirror.corp", 8080),
        ("mirror:8080", "mirror", 8080),
        ("pypi", "files.pythonhosted.org", 443),
        ("NPM", "registry.npmjs.org", 443),
        ("crates", "static.crates.io", 443),
        ("go", "sum.golang.org", 443),
        ("debian", "deb.debian.org", 80),
    ],
)
def test_an_entry_allows(entry: str, name: str, port: int) -> None:
    assert why_refused(name, port, parse_hosts([entry])) == ""


@pytest.mark.parametrize(
    ("entry", "name", "port", "reason"),
    [
        ("example.org", "example.org", 80, "port 80 is not on the list"),
        ("example.org", "a.example.org", 443, "the host is not on the list"),
        ("example.org", "badexample.org", 443, "the host is not on the list"),
        ("example.org", "example.org.evil.test", 443, "the host is not on the list"),
        ("*.example.org", "example.org", 443, "the host is not on the list"),
        ("*.example.org", "badexample.org", 443, "the host is not on the list"),
        ("*.example.org", ".example.org", 443, "not a host name"),
        ("*.example.org", "evil.test\0.example.org", 443, "not a host name"),
        ("*.example.org", "evil.test/.example.org", 443, "not a host name"),
        ("localhost:5432", "127.0.0.1", 5433, "port 5433 is not on the list"),
        ("localhost:5432", "127.0.0.2", 5432, "an address instead of a host name"),
        ("localhost:5432", "127.1", 5432, "an address instead of a host name"),
        ("localhost:5432", "0x7f000001", 5432, "an address instead of a host name"),
        ("localhost:5432", "0x7f.1", 5432, "an address instead of a host name"),
        ("localhost:5432", "2130706433", 5432, "an address instead of a host name"),
        ("localhost:5432", "017700000001", 5432, "an address instead of a host name"),
        ("localhost:5432", "::ffff:127.0.0.1", 5432, "an address instead of a host name"),
        ("localhost:5432", "0.0.0.0", 5432, "an address instead of a host name"),
        ("10.0.0.5:8080", "::ffff:10.0.0.5", 8080, "an address instead of a host name"),
        ("10.0.0.5:8080", "10.0.0.6", 8080, "an address instead of a host name"),
        ("pypi", "pypi.org", 80, "port 80 is not on the list"),
        ("pypi", "test.pypi.org", 443, "the host is not on the list"),
        ("go", "storage.googleapis.com", 443, "the host is not on the list"),
        ("example.org", "example.org\n", 80, "port 80 is not on the list"),
        ("example.org", "exa mple.org", 443, "not a host name"),
        ("example.org", "example.org/", 443, "not a host name"),
        ("example.org", "", 443, "not a host name"),
        ("example.org", "ex\0ample.org", 443, "not a host name"),
    ],
)
def test_an_entry_does_not_allow(entry: str, name: str, port: int, reason: str) -> None:
    assert why_refused(name, port, parse_hosts([entry])) == reason


@pytest.mark.parametrize(
    ("entry", "problem", "hint"),
    [
        ("https://example.org", "is not a host name", "without https://"),
        ("example.org/simple", "is not a host name", "without a path"),
        ("example.org:", "has a port that is not a number", ""),
        ("example.org:0", "has a port", ""),
        ("example.org:65536", "has a port", ""),
        ("example.org:http", "has a port", ""),
        ("example.org:80,", "has a port", ""),
        ("[::1]x", "has a port", ""),
        ("exa mple.org", "is not a host name", "*.example.org"),
        ("-example.org", "is not a host name", ""),
        ("example..org", "is not a host name", ""),
        (f"{'a' * 64}.org", "is not a host name", ""),
        (".".join(["abcdefg"] * 40), "is not a host name", ""),
        ("user@example.org", "is not a host name", ""),
        ("*", "is every host", "sandbox.network"),
        ("*.org", "allows too much", "*.example.org"),
        ("a.*.example.org", "is not a host name", ""),
        ("*example.org", "is not a host name", "a wildcard stands for the first part"),
        ("*.10.0.0.5", "is not a host name", ""),
        ("pipy", "is neither a registry nor a host with a port", "pypi"),
        ("localhost", "is neither a registry nor a host with a port", "localhost:5432"),
        ("127.0.0.1", "is neither a registry nor a host with a port", ""),
        ("pypi:443", "is a package registry", "write pypi"),
        ("10.0.0.5", "is an address without a port", "10.0.0.5:8080"),
        ("fd00::5", "is an address without a port", "[fd00::5]:8080"),
        ("127.1:80", "is an address in an unusual form", "127.0.0.1"),
        ("0x7f000001:80", "is an address in an unusual form", ""),
        ("2130706433:80", "is an address in an unusual form", ""),
        ("010.0.0.1:80", "is an address in an unusual form", ""),
        ("0.0.0.0:80", "is not the address of a host", "localhost:80"),
        ("[::]:80", "is not the address of a host", "localhost:80"),
        ("224.0.0.1:80", "is not the address of a host", ""),
    ],
)
def test_a_bad_entry_is_a_sentence(entry: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_hosts([entry])
    assert error.value.message.startswith(f"sandbox.allow_hosts: {entry[:100]!r} {problem}")
    assert hint in error.value.hint
    assert error.value.hint


def test_ports_survive_a_list_that_was_split_at_commas() -> None:
    assert parse_hosts(["pypi", "example.org:80", "443", " a.test "]) == parse_hosts(
        ["pypi", "example.org:80,443", "a.test"]
    )
    with pytest.raises(ConfigError):
        parse_hosts(["example.org", "443"])


PRIVATE = (
    *("127.0.0.1", "127.8.9.1", "10.0.0.5", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("100.100.100.200", "0.0.0.0", "0.1.2.3", "192.0.0.192", "198.18.0.1", "192.0.2.1", "224.0.0.1", "239.1.1.1"),
    *("240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1"),
    *("2002:7f00:1::", "2002:a00:5::1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "100::1", "5f00::1", "3fff::1"),
)
PUBLIC = ("8.8.8.8", "1.1.1.1", "151.101.0.223", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::")


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public(address: str) -> None:
    assert not is_public(address)
    for entry in ("example.org", "*.org.test", "pypi"):
        name = {"example.org": "example.org", "*.org.test": "a.org.test", "pypi": "pypi.org"}[entry]
        assert "private address" in why_not_there(name, 443, [address], parse_hosts([entry]))
        assert "private address" in why_not_there(name, 443, ["8.8.8.8", address], parse_hosts([entry]))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)
    assert why_not_there("example.org", 443, [address], parse_hosts(["example.org"])) == ""


def test_a_service_with_a_port_may_be_private() -> None:
    hosts = parse_hosts(["mirror.corp:8080", "10.0.0.5:80", "169.254.1.1:80", "localhost:5432", "*.corp.test:8080"])
    assert why_not_there("mirror.corp", 8080, ["10.1.2.3"], hosts) == ""
    assert why_not_there("mirror.corp", 8080, ["127.0.0.1"], hosts) == ""
    assert why_not_there("10.0.0.5", 80, ["10.0.0.5"], hosts) == ""
    assert why_not_there("169.254.1.1", 80, ["169.254.1.1"], hosts) == ""
    assert why_not_there("localhost", 5432, ["127.0.0.1"], hosts) == ""
    assert "private" in why_not_there("a.corp.test", 8080, ["10.1.2.3"], hosts)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "168.63.129.16", "0.0.0.0"]
)
def test_no_name_leads_to_the_metadata_of_a_cloud(address: str) -> None:
    assert address in why_not_there("mirror.corp", 8080, [address], parse_hosts(["mirror.corp:8080"]))


@given(st.integers(0, 2**32 - 1))
def test_an_address_is_as_private_in_every_disguise(number: int) -> None:
    plain = IPv4Address(number)
    disguises = (
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0x2002 << 112 | number << 80),
        IPv6Address(0x64FF9B << 96 | number),
    )
    assert {is_public(str(one)) for one in disguises} == {is_public(str(plain))}


@given(st.ip_addresses())
def test_what_is_not_global_is_not_public(address: IPv4Address | IPv6Address) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not any((address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified))


@given(st.one_of(st.integers(0, 2**32 - 1).map(str), st.integers(0, 2**32 - 1).map(hex), st.ip_addresses().map(str)))
def test_an_address_is_never_taken_for_a_name(text: str) -> None:
    assert is_address(text)
    assert why_refused(text, 443, parse_hosts(["*.example.org", "example.org", "pypi"]))


@given(NAMES, PORTS, PORTS)
def test_a_name_with_a_port_allows_that_and_nothing_else(name: str, port: int, other: int) -> None:
    hosts = parse_hosts([f"{name}:{port}"])
    assert why_refused(name.upper() + ".", port, hosts) == ""
    assert bool(why_refused(name, other, hosts)) == (other != port)
    assert why_refused(f"a{name}", port, hosts)
    assert why_refused(f"a.{name}", port, hosts)
    assert why_refused(f"{name}.test", port, hosts)


@given(st.text(max_size=40))
def test_an_entry_is_understood_or_an_error(text: str) -> None:
    try:
        hosts = parse_hosts([text])
    except ConfigError:
        return
    for host in hosts:
        assert host.ports <= set(range(1, 65536))
        assert canonical(host.pattern) == host.pattern
        assert why_refused("evil.test", 443, hosts) or "evil.test" in host.pattern


@given(st.text(max_size=40), PORTS)
def test_no_name_is_allowed_by_an_empty_list(name: str, port: int) -> None:
    assert why_refused(name, port, ())


def test_ports_of_loopback_services_are_forwarded() -> None:
    entries = ["pypi", "localhost:5432,6379", "127.0.0.1:80", "[::1]:81", "127.0.0.2:82", "10.0.0.5:83", "a.test:84"]
    assert forwards(entries) == (80, 81, 5432, 6379)


@pytest.mark.parametrize(
    ("name", "port", "entry"),
    [
        ("pypi.org", 443, "pypi"),
        ("files.pythonhosted.org", 443, "pypi"),
        ("deb.debian.org", 80, "debian"),
        ("pypi.org", 80, "pypi.org:80"),
        ("example.org", 443, "example.org"),
        ("example.org", 8443, "example.org:8443"),
        ("10.0.0.5", 443, "10.0.0.5:443"),
        ("fd00::5", 443, "[fd00::5]:443"),
        ("127.0.0.1", 5432, "localhost:5432"),
        ("mirror", 443, "mirror:443"),
    ],
)
def test_the_entry_for_a_refused_host_allows_it(name: str, port: int, entry: str) -> None:
    assert entry_for(name, port) == entry
    assert why_refused(name, port, parse_hosts([entry])) == ""


def test_the_command_keeps_what_is_allowed_now() -> None:
    assert command_to_allow("example.org", 443, "", ["pypi"]) == "ralph config set sandbox.allow_hosts pypi,example.org"
    wanted = "ralph config set sandbox.allow_hosts '*.a.test,example.org:8443'"
    assert command_to_allow("example.org", 8443, "", ["*.a.test"]) == wanted
    private = why_not_there("mirror.corp", 443, ["10.0.0.5"], parse_hosts(["mirror.corp"]))
    assert command_to_allow("mirror.corp", 443, private, []).endswith(" mirror.corp:443")
    assert command_to_allow("fd00::5", 80, "", ["pypi"]).endswith(""" '["pypi", "[fd00::5]:80"]'""")


def test_every_registry_is_named_by_its_hosts() -> None:
    for word in REGISTRIES:
        for host in parse_hosts([word]):
            assert not host.is_service
            assert not host.pattern.startswith("*")
            assert {registry_of(host.pattern, port) for port in host.ports} == {word}
