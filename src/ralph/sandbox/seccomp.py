"""A seccomp filter for what runs inside: a few system calls are refused, all others pass. Compiled to BPF here.

Refused is what a namespace does not cover (kernel keyrings, VSOCK) and what ordinary programs never need but attackers
of the kernel do (bpf, io_uring, userfaultfd, mounts). `clone3` does not exist inside, because a filter cannot read its
flags: the C library and the runtimes of Go, Rust and Chromium then use `clone`. ptrace stays: debuggers need it, and
it reaches only processes inside.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_NEW_TIME = 0x80
"""CLONE_NEWTIME; in `clone` this bit belongs to the signal."""
_SET_USER_ID = 0o4000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. VSOCK has no namespace: it reaches the host of a virtual machine."""

_SAME_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_X86_64 = {
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "syslog": 103,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "setns": 308,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "setns": 268,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


class Architecture(Struct, frozen=True):
    audit: int
    """What the kernel calls it in a filter's data."""
    refused: Mapping[str, int]
    looked_at: Mapping[str, int]
    """Refused by an argument, or as if unknown."""


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        _SAME_EVERYWHERE | _X86_64,
        {
            "ioctl": 16,
            "socket": 41,
            "clone": 56,
            "chmod": 90,
            "fchmod": 91,
            "fchmodat": 268,
            "unshare": 272,
            "clone3": 435,
            "fchmodat2": 452,
        },
    ),
    "aarch64": Architecture(
        0xC00000B7,
        _SAME_EVERYWHERE | _AARCH64,
        {
            "ioctl": 29,
            "fchmod": 52,
            "fchmodat": 53,
            "unshare": 97,
            "socket": 198,
            "clone": 220,
            "clone3": 435,
            "fchmodat2": 452,
        },
    ),
}
_MODE_ARGUMENT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}


@lru_cache
def compiled(machine: str = "") -> bytes:
    """The filter as the kernel takes it; empty for a machine whose system calls are not in the table."""
    architecture = ARCHITECTURES.get(machine or platform.machine())
    return b"".join(_program(architecture)) if architecture else b""


def _program(architecture: Architecture) -> Iterator[bytes]:
    yield _load(_MACHINE)
    yield _jump(_IF_EQUAL, architecture.audit, skip_if_not=0, skip_if=1)
    yield _refuse(_EPERM)  # 32-bit calls on a 64-bit system
    yield _load(_NUMBER)
    if architecture.audit == ARCHITECTURES["x86_64"].audit:
        yield _jump(_IF_AT_LEAST, _X32, skip_if_not=1)
        yield _refuse(_ENOSYS)
    numbers = sorted(architecture.refused.values())
    for place, number in enumerate(numbers):
        is_last = place == len(numbers) - 1
        yield _jump(_IF_EQUAL, number, skip_if=len(numbers) - 1 - place, skip_if_not=1 if is_last else 0)
    yield _refuse(_EPERM)
    for name, number in architecture.looked_at.items():
        checks = list(_checks(name))
        yield _jump(_IF_EQUAL, number, skip_if_not=len(checks))
        yield from checks
    yield _statement(_RETURN, _ALLOW)


def _checks(name: str) -> Iterator[bytes]:
    """What is done about one call. Every list of checks ends with a return."""
    if name == "clone3":
        yield _refuse(_ENOSYS)
        return
    if name == "socket":
        yield _argument(0)
        for place, family in enumerate(_FAMILIES):
            yield _jump(_IF_EQUAL, family, skip_if=len(_FAMILIES) - place)
        yield _refuse(_EAFNOSUPPORT)
    elif name == "ioctl":
        yield _argument(1)
        yield _jump(_IF_EQUAL, _TIOCSTI, skip_if=1)
        yield _jump(_IF_EQUAL, _TIOCLINUX, skip_if_not=1)
        yield _refuse(_EPERM)
    else:
        bits = _SET_USER_ID if name in _MODE_ARGUMENT else _NEW_NAMESPACES
        yield _argument(_MODE_ARGUMENT.get(name, 0))
        yield _jump(_IF_ANY_BIT, bits | (_NEW_TIME if name == "unshare" else 0), skip_if_not=1)
        yield _refuse(_EPERM)
    yield _statement(_RETURN, _ALLOW)


def _argument(index: int) -> bytes:
    """Load the lower half of an argument; both architectures are little-endian."""
    return _load(_ARGUMENTS + 8 * index)


def _load(offset: int) -> bytes:
    return _statement(_LOAD, offset)


def _refuse(error: int) -> bytes:
    return _statement(_RETURN, _ERRNO | error)


def _statement(code: int, value: int) -> bytes:
    return struct.pack("<HBBI", code, 0, 0, value)


def _jump(code: int, value: int, *, skip_if: int = 0, skip_if_not: int = 0) -> bytes:
    return struct.pack("<HBBI", code, skip_if, skip_if_not, value)
