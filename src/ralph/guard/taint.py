"""Unknown parts of text: each mark is one private-use character, so that joining, cutting and passing text on keeps
track of its origin."""

from ralph.guard.patterns import wordlist

UNKNOWN = "\ue000"
"""Something from this machine: the content of a file, the output of a program."""
SECRET = "\ue001"
"""Keys, credentials, the environment."""
NETWORK = "\ue002"
"""Data sent by a server."""
OPAQUE = "\ue003"
"""Produced by a program and not readable here: decoded, decrypted, unpacked, computed."""
LOCAL = "\ue004"
"""Names of some files in the current folder."""
PARENT = "\ue005"
"""The process that started this shell."""
EVERYONE = "\ue006"
"""The PIDs of all processes, or the IDs of all containers."""

PLACEHOLDER = chr(0xF0000)
"""From here on: parts of a word while its braces are expanded."""

OUTPUT = "\ue007"
"""Something, as the result of a substitution."""

KEY = "\ue008"
"""Comes with SECRET: must not be displayed either."""

_TAINTS = (SECRET, KEY, NETWORK, OPAQUE, EVERYONE)
_FIRST_NAME = 0xE100
_LAST_NAME = 0xF8FF


def is_known(text: str) -> bool:
    return text.isascii() or not any("\ue000" <= letter <= "\uf8ff" for letter in text)


def is_mark(letter: str) -> bool:
    return "\ue000" <= letter <= "\uf8ff" or letter >= PLACEHOLDER


def taints(text: str) -> str:
    """The marks that carry over to whatever is made from the text."""
    return "" if text.isascii() else "".join(mark for mark in _TAINTS if mark in text)


def without_marks(text: str) -> str:
    """Remove marks from input: only the guard makes them."""
    return text if text.isascii() else "".join("?" if is_mark(letter) else letter for letter in text)


def readable(text: str) -> str:
    """For a message: unknown parts become dots."""
    return text if is_known(text) else "".join("…" if is_mark(letter) else letter for letter in text)


class Names:
    """Variables not set in the command: one mark for each, because it matters which one it is."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def mark(self, name: str) -> str:
        if name not in self.known:
            if len(self.known) > _LAST_NAME - _FIRST_NAME:
                return UNKNOWN
            self.known.append(name)
        return chr(_FIRST_NAME + self.known.index(name))

    def name(self, mark: str) -> str:
        number = ord(mark) - _FIRST_NAME
        return self.known[number] if 0 <= number < len(self.known) else ""

    def names_in(self, text: str) -> list[str]:
        return [] if text.isascii() else [name for letter in text if (name := self.name(letter))]


_SECRET_WORDS = wordlist("TOKEN SECRET PASSW PASSWD API_KEY APIKEY PRIVATE CREDENTIAL ACCESS_KEY _PAT")


def secret_marks(name: str) -> str:
    """The marks of a variable. A bare `$TOKEN` is often a test's own."""
    return "" if not is_secret_name(name) else SECRET + KEY if "_" in name.strip("_") else SECRET


def is_secret_name(name: str) -> bool:
    name = name.upper()
    return any(word in name for word in _SECRET_WORDS) or name in ("PGPASSWORD", "MYSQL_PWD", "AUTH", "DATABASE_URL")
