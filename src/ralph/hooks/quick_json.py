"""JSON with the C parts of the standard library: `json` imports `re`, which costs more than everything else here."""

import _json


class _Settings:
    """What the C scanner needs from a decoder."""

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan = _json.make_scanner(_Settings())  # type: ignore[arg-type]


def loads(text: str) -> object:
    """Raises ValueError for anything that is not JSON, RecursionError for deep nesting."""
    start = len(text) - len(text.lstrip(" \t\r\n\ufeff"))
    try:
        value, end = _scan(text, start)
    except (StopIteration, SystemError):  # the second when its own error class, in `json`, is not imported
        raise ValueError("not JSON") from None
    if text[end:].strip(" \t\r\n\0"):
        raise ValueError("more than one JSON document")
    return value


def dumps(value: object) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(str(key))}: {dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dumps(item) for item in value) + "]"
    raise TypeError(f"cannot encode {type(value).__name__} as JSON")
