"""What a process gives up before it becomes another program. Linux."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 24, 38, 22
_SECCOMP_MODE_FILTER = 2
_MS_READ_ONLY, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 32, 4096, 16384
_MS_LOCKED = 2 | 4 | 8
"""No set-user-ID programs, no devices, no programs: a namespace may not take these from a mount it was given."""
_CAPABILITIES = 64
_INSTRUCTION = 8


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def make_read_only(paths: Iterable[str]) -> None:
    """In a mount namespace of our own, and with the right to mount. What does not exist is left out."""
    library = ctypes.CDLL(None, use_errno=True)
    for path in paths:
        if os.path.lexists(path):
            place = os.fsencode(path)
            _check(library.mount(place, place, None, ctypes.c_ulong(_MS_BIND | _MS_REC), None), path)
            kept = os.statvfs(path).f_flag & _MS_LOCKED
            flags = ctypes.c_ulong(_MS_BIND | _MS_REMOUNT | _MS_READ_ONLY | kept)
            _check(library.mount(None, place, None, flags, None), path)


def drop_capabilities() -> None:
    """For the program that this process becomes; as root it would get them all again."""
    library = ctypes.CDLL(None)
    for capability in range(_CAPABILITIES):
        library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for those that the kernel does not know


def filter_system_calls(program: bytes) -> None:
    """For good, for this process and all it starts."""
    library = ctypes.CDLL(None, use_errno=True)
    _check(library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if program:
        rules = _Program(len(program) // _INSTRUCTION, program)
        _check(library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(rules), 0, 0), "seccomp")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
