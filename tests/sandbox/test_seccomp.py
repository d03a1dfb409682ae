"""The filter's numbers are those of the kernel's headers, and the kernel takes it."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from ralph.sandbox import seccomp

HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    header = next((path for path in HEADERS[machine] if path.exists()), None)
    if header is None:
        pytest.skip("no kernel headers here")
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR3?\w*?_(\w+) (\d+)", header.read_text())}
    ours = {**seccomp.ARCHITECTURES[machine].refused, **seccomp.ARCHITECTURES[machine].looked_at}
    known = {name: number for name, number in ours.items() if name in numbers}
    assert len(known) > 35
    assert known == {name: numbers[name] for name in known}


def verdict(rules: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would do: the filter is run as the kernel runs it."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    statements = [struct.unpack_from("<HBBI", rules, at) for at in range(0, len(rules), 8)]
    place = value = 0
    while True:
        code, if_true, if_false, constant = statements[place]
        place += 1
        match code:
            case 0x20:
                value = struct.unpack_from("<I", data, constant)[0]
            case 0x06:
                return constant & 0xFFFF if constant >> 16 == 5 else 0
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
                place += if_true if holds else if_false
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_every_call_of_the_table_is_refused_and_others_pass(machine: str) -> None:
    rules, architecture = seccomp.compiled(machine), seccomp.ARCHITECTURES[machine]
    refused = {*architecture.refused.values()}
    looked_at = {*architecture.looked_at.values()}
    for number in range(600):
        if number not in looked_at:
            assert verdict(rules, architecture.audit, number) == (1 if number in refused else 0), number


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_arguments_decide_about_the_rest(machine: str) -> None:
    rules, architecture = seccomp.compiled(machine), seccomp.ARCHITECTURES[machine]

    def errno(name: str, *arguments: int) -> int:
        return verdict(rules, architecture.audit, architecture.looked_at[name], *arguments)

    assert [errno("socket", family) for family in (1, 2, 10, 16)] == [0, 0, 0, 0]
    assert {errno("socket", family) for family in range(50) if family not in (1, 2, 10, 16)} == {97}
    assert errno("clone", 0x3D0F00) == 0  # a thread, as the C library starts it
    assert errno("clone", 0x11) == 0  # fork
    assert errno("clone", 0x10000011) == errno("unshare", 0x10000000) == errno("unshare", 0x80) == 1
    assert errno("unshare", 0x400) == 0  # CLONE_FILES
    assert errno("clone3") == 38
    assert errno("ioctl", 0, 0x5412) == errno("ioctl", 0, 0x541C) == 1
    assert errno("ioctl", 0, 0x5413) == 0
    assert errno("fchmod", 0, 0o755) == errno("fchmodat", 0, 0, 0o2755) == 0
    assert errno("fchmod", 0, 0o4755) == errno("fchmodat", 0, 0, 0o6755) == 1


def test_calls_of_another_architecture_are_refused() -> None:
    rules, audit = seccomp.compiled("x86_64"), seccomp.ARCHITECTURES["x86_64"].audit
    assert verdict(rules, 0x40000003, 20) == 1
    assert verdict(rules, audit, 0x40000000 | 39) == 38


def test_an_unknown_machine_has_no_filter() -> None:
    assert seccomp.compiled("riscv64") == b""
