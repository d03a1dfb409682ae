"""SQL and similar languages: statements that drop, empty or overwrite."""

_HARM = (
    *(
        "DROP DATABASE",
        "DROP SCHEMA",
        "DROP TABLE",
        "DROP KEYSPACE",
        "DROP COLLECTION",
        "DROP USER",
        "DROP ROLE",
        "DROP VIEW",
    ),
    *(
        "DROP INDEX",
        "DROP TABLESPACE",
        "DROP OWNED",
        "DROP MATERIALIZED",
        "DROP TYPE",
        "DROP BUCKET",
        "DROP MEASUREMENT",
    ),
    *(
        "DROP SEQUENCE",
        "DROP FUNCTION",
        "DROP EXTENSION",
        "DROP PROCEDURE",
        "DROP TRIGGER",
        "DROP STREAM",
        "DROP DICTIONARY",
    ),
    *("TRUNCATE", "DROPDATABASE(", "SHUTDOWN", "DROP PUBLICATION", "DETACH DELETE"),
)
_TRIAL = ("test", "tmp", "temp", "scratch", "sandbox", "demo", "dummy", "fixture", "mock", "example")


def harm_in(text: str) -> str:
    """The harmful statement; empty if there is none."""
    for statement in _statements(text):
        words = " ".join(statement.upper().split())
        if not words or words.startswith(
            ("SELECT", "EXPLAIN", "SHOW", "DESCRIBE", "INSERT INTO LOG", "\\D", "PRAGMA TABLE")
        ):
            continue
        if any(words.startswith(harm) or f" {harm} " in words for harm in _HARM) and not _is_trial(statement):
            return statement
        if words.startswith("DELETE FROM") and " WHERE " not in words:
            return statement
        if words.startswith("UPDATE ") and " SET " in words and " WHERE " not in words:
            return statement
        if words.startswith("ALTER TABLE") and (" DROP COLUMN " in words or " DROP " in words):
            return statement
        if " WHERE 1=1" in words or " WHERE TRUE" in words or " WHERE 1 = 1" in words:
            return statement
    return ""


def _is_trial(statement: str) -> bool:
    """Whether the name says that it is for testing."""
    name = statement.split()[-1].strip("\"'`;()").lower() if statement.split() else ""
    if name in ("cascade", "restrict"):
        name = statement.split()[-2].strip("\"'`;()").lower()
    return any(name == word or name.startswith(word + "_") or name.endswith("_" + word) for word in _TRIAL)


def is_trial_name(name: str) -> bool:
    name = name.lower().rpartition("/")[2]
    parts = name.replace("-", "_").replace(".", "_").split("_")
    return any(word in parts for word in (*_TRIAL, "tests", "testing", "ci")) or name.startswith("test")


def _statements(text: str) -> list[str]:
    """Split at semicolons outside quotes, without comments."""
    lines = [line.partition("--")[0] for line in text.split("\n")]
    text = "\n".join(lines)
    while "/*" in text and "*/" in text:
        head, _, rest = text.partition("/*")
        text = head + " " + rest.partition("*/")[2]
    found: list[str] = []
    current, quote = "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter == ";":
            found.append(current.strip())
            current = ""
            continue
        current += letter
    return [*found, current.strip()]


_MONGO = (
    "dropdatabase(",
    ".drop(",
    "deletemany({})",
    "remove({})",
    "deletemany( {} )",
    "dropuser(",
    "dropalldatabases",
)
_REDIS = ("FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB", "DEBUG SEGFAULT")


def mongo_harm(text: str) -> bool:
    plain = "".join(text.lower().split())
    return any("".join(word.split()) in plain for word in _MONGO)


def redis_harm(text: str) -> bool:
    words = " ".join(text.upper().split())
    return any(f" {word} " in f" {words} " for word in _REDIS) or "CONFIG SET DIR" in words
