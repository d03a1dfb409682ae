"""Database clients, and framework tools that drop and rebuild databases."""

from ralph.guard import paths as at
from ralph.guard.invocation import Invocation
from ralph.guard.patterns import one_of, wordlist
from ralph.guard.taint import UNKNOWN

_DROPPED = wordlist(
    """
    DATABASE SCHEMA TABLE KEYSPACE COLLECTION USER ROLE VIEW INDEX TABLESPACE OWNED MATERIALIZED TYPE BUCKET MEASUREMENT
    SEQUENCE FUNCTION EXTENSION PROCEDURE TRIGGER STREAM DICTIONARY PUBLICATION
    """
)
_STATEMENTS = (*[f"DROP {what}" for what in _DROPPED], "TRUNCATE", "DROPDATABASE(", "SHUTDOWN", "DETACH DELETE")
_HARMLESS = ("SELECT", "EXPLAIN", "SHOW", "DESCRIBE", "INSERT INTO LOG", "\\D", "PRAGMA TABLE")
_TRIAL = ("test", "tmp", "temp", "scratch", "sandbox", "demo", "dummy", "fixture", "mock", "example")


def harm_in(text: str) -> str:
    """The harmful statement; empty if there is none."""
    for statement in _statements(text):
        words = " ".join(statement.upper().split())
        if not words or words.startswith(_HARMLESS):
            continue
        is_everything = " WHERE " not in words
        if (
            (any(words.startswith(harm) or f" {harm} " in words for harm in _STATEMENTS) and not _is_trial(statement))
            or (words.startswith("DELETE FROM") and is_everything)
            or (words.startswith("UPDATE ") and " SET " in words and is_everything)
            or (words.startswith("ALTER TABLE") and " DROP " in words)
            or any(always in words for always in (" WHERE 1=1", " WHERE TRUE", " WHERE 1 = 1"))
        ):
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


_MONGO = ("dropdatabase(", ".drop(", "deletemany({})", "remove({})", "dropuser(", "dropalldatabases")
_REDIS = ("FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB", "DEBUG SEGFAULT")


def mongo_harm(text: str) -> bool:
    plain = "".join(text.lower().split())
    return any(word in plain for word in _MONGO)


_CODE = ("-c", "--command", "-e", "--execute", "-q", "-Q", "--query", "--eval", "-cmd", "--sql", "-x")


def client(call: Invocation) -> None:
    """psql, mysql and others: the statements are in an option, or come from stdin."""
    options = call.options()
    database = options.value("-d", "--dbname", "-D", "--database") or "".join(options.rest[:1])
    _statements_of(call, options.all(*_CODE) or [call.stdin], bool(database) and is_trial_name(database))


def _statements_of(call: Invocation, texts: list[str], is_trial: bool) -> None:
    for text in texts:
        _shell_escapes(call, text)
        if (harm := harm_in(text)) and not is_trial:
            call.deny("databases", f"This runs {' '.join(harm.split()[:4])}")


def _shell_escapes(call: Invocation, text: str) -> None:
    for line in [each.strip() for each in text.split("\n")]:
        for mark in ("\\!", ".shell ", ".system ", "!", "system "):
            if line.startswith(mark) and len(line) > len(mark):
                call.run_text(line[len(mark) :])
        for mark in ("to program '", "from program '"):
            if mark in line.lower():
                call.run_text(line[line.lower().index(mark) + len(mark) :].partition("'")[0])


def sqlite(call: Invocation) -> None:
    options = call.options()
    words = options.rest
    path = words[0] if words else ":memory:"
    is_trial = path in ("", ":memory:") or is_trial_name(path) or call.shell.locate(path).kind == at.TEMP
    _statements_of(call, [*words[1:], *options.all("-cmd")] or [call.stdin], is_trial)


def mongo(call: Invocation) -> None:
    options = call.options()
    for text in [*options.all("--eval"), call.stdin]:
        if mongo_harm(text) and not any(is_trial_name(word) for word in options.rest):
            call.deny("databases")


def redis(call: Invocation) -> None:
    for text in (" ".join(call.args), call.stdin):
        words = f" {' '.join(text.upper().split())} "
        if any(f" {word} " in words for word in _REDIS) or "CONFIG SET DIR" in words:
            call.deny("databases")


def drop(call: Invocation) -> None:
    """dropdb, dropuser."""
    options = call.options()
    if not options.rest or not all(is_trial_name(name) for name in options.rest):
        call.deny("databases")


def admin(call: Invocation) -> None:
    words = [word.lower() for word in call.options().rest]
    if words and words[0] in ("drop", "shutdown", "flush-hosts") and not (len(words) > 1 and is_trial_name(words[1])):
        call.deny("databases")


def pg_restore(call: Invocation) -> None:
    options = call.options()
    name = options.value("-d", "--dbname")
    if options.has("-c", "--clean") and name and not is_trial_name(name):
        call.deny("databases")


_TASKS = one_of(
    """
    db:drop db:drop:all db:reset db:purge db:truncate_all db:migrate:reset db:schema:load db:setup:reset db:drop:_unsafe
    ecto.drop ecto.reset migrate:fresh migrate:reset migrate:refresh db:wipe flush reset_db sqlflush:run schema:drop
    db:drop:test db:migrate:undo:all reset_schema delete_all queue:flush
    """
)


def tasks(call: Invocation) -> None:
    """rails, rake, mix, artisan, sequelize, typeorm, manage.py."""
    if call.name == "rake":
        for text in call.options().all("-e", "-E", "-p", "--execute", "--execute-continue", "--execute-print"):
            call.run(["ruby", "-e", text], "")
    environment = {**call.env, **dict(arg.split("=", 1) for arg in call.args if "=" in arg)}
    names = ("RAILS_ENV", "MIX_ENV", "NODE_ENV", "APP_ENV", "DJANGO_ENV", "RACK_ENV")
    if any(environment.get(name) == "test" for name in names) or {"--env=testing", "--env=test"} & set(call.args):
        return
    words = call.options().rest
    if words[:1] == ["hex.publish"]:
        call.deny("publishing")
    if call.name in ("rails", "rake") and words[:1] in (["runner"], ["r"]):
        for text in words[1:]:
            call.run(["ruby", "-e", text], "")
    if call.name in ("manage.py", "django-admin") and words[:1] == ["shell"]:
        for text in call.options().all("-c", "--command") or [call.stdin]:
            call.run(["python", "-c", text], "")
    if any(word in _TASKS for word in words) or (words[:1] == ["migrate"] and words[-1] == "zero"):
        call.deny("databases")


def other_client(call: Invocation) -> str | None:
    """clickhouse, cqlsh, sqlplus …: the same statements, different options."""
    for text in [*call.args, call.stdin]:
        if harm_in(text):
            call.deny("databases")
    return UNKNOWN
