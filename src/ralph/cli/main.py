"""The entry point: finds the command, runs it, and turns every error into a message and an exit code.

Every call pays for the imports at the top, even `ralph --version`: a test compares them with a list.
"""

import os
import sys

from ralph import __version__

TYPE_CHECKING = False  # the name is all that a type checker needs; importing typing takes 4 ms
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import TextIO

    from ralph.cli.arguments import Parser
    from ralph.core.errors import RalphError

_MOST_PROBLEMS = 10


def entry() -> None:
    """The process around `main`: its streams may be closed, full, or unable to encode every character."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - pathlib is too dear here
    _use_utf8_for_paths()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=_on_missing_characters(stream))  # type: ignore[union-attr]
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        code = 0  # the reader has seen enough
        _forget_stdout()
    except KeyboardInterrupt:
        _end_at_interrupts()
        code = 130
        if not _has_reader():
            _forget_stdout()
    except OSError as error:
        sys.stderr.write(f"ralph: cannot write the output: {error.strerror}\n")
        code = 78
        _forget_stdout()
    finally:
        _end_at_interrupts()
    sys.exit(code)


def _use_utf8_for_paths() -> None:
    """Start again in Python's UTF-8 mode if paths are decoded by a locale without Unicode (`LC_ALL=C PYTHONUTF8=0`).

    The paths in plans, settings and journals are UTF-8, and must name the same files. The streams keep the encoding of
    the locale, and child processes the environment.
    """
    if sys.getfilesystemencoding() != "utf-8" and os.name == "posix" and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.flags.utf8_mode and os.environ.get("PYTHONUTF8") == "0" and "PYTHONIOENCODING" not in os.environ:
        import locale

        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding=locale.getencoding())  # type: ignore[union-attr]


def _on_missing_characters(stream: "TextIO") -> str:
    if stream.encoding.lower() == "utf-8":
        return "backslashreplace"
    from ralph.cli.plain_signs import register

    return register()


def _has_reader() -> bool:
    """Whether stdout takes more: a pager may have stopped reading, and the last flush would wait for it."""
    import select

    try:
        return bool(select.select((), (1,), (), 0.2)[1])
    except (OSError, ValueError):
        return False


def _forget_stdout() -> None:
    """Discard buffered output: Python would try to write it again at exit, and report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main(argv: list[str]) -> int:
    if argv and argv[0] in ("-V", "--version"):
        sys.stdout.write(f"ralph {__version__}\n")
        return 0
    if not argv or argv in (["-h"], ["--help"], ["help"]):
        sys.stdout.write(overview())
        return 0 if argv else 64
    return _guarded(["help", *argv[1:]] if argv[0] in ("-h", "--help") else argv)


def overview() -> str:
    """The everyday commands, on one screen of 24 rows."""
    from ralph.cli.table import DAILY, entries, shown

    known = entries()
    return "\n".join(
        [
            "usage: ralph COMMAND [OPTIONS]",
            "",
            "Let a coding agent work through a list of stories, and prove what it did.",
            "",
            *(row(names, summary or known[names].summary) for names, summary in DAILY.items()),
            "",
            f"  ralph help --all        all {len(shown())} commands",
            "  ralph COMMAND --help    its options, with examples",
            "",
            "example: ralph init && ralph check && ralph run",
            "",
        ]
    )


def row(name: str, summary: str) -> str:
    return f"  {name:<12} {summary}"


def _load_msgspec() -> None:
    """Hide typing_extensions from msgspec: importing it costs 10 ms, and Python 3.11 has all it needs."""
    if "typing_extensions" in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]  # other code still gets the real one


def _guarded(argv: list[str]) -> int:
    _load_msgspec()
    from ralph.core.errors import RalphError

    try:
        return _run(argv)
    except SystemExit as stop:  # argparse leaves this way after --help
        return int(stop.code or 0)
    except RalphError as error:
        return _report(error)
    except (BrokenPipeError, KeyboardInterrupt):
        raise  # for `entry`
    except OSError as error:
        return _report_trouble(error)
    except Exception:  # noqa: BLE001 - the one boundary: a traceback never reaches a user
        return _report_bug()


def _run(argv: list[str]) -> int:
    from ralph.cli.table import resolve

    name, rest = resolve(argv)
    if not name:
        name, rest = resolve([*_guess(argv[0]), *argv[1:]])
    arguments = parser_of(name).parse_args(rest)
    _listen_to_interrupts()
    return function_of(name)(arguments)


def _listen_to_interrupts() -> None:
    """Only now: `ralph.__main__` has them end the process while modules are imported."""
    import _signal  # type: ignore[import-not-found]

    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _end_at_interrupts() -> None:
    """Nothing catches them any more: Python would show a traceback while it shuts down."""
    import _signal

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def parser_of(name: str) -> "Parser":
    """The parser of a command. It imports no feature: `--help` is quick."""
    from importlib import import_module

    from ralph.cli.arguments import Parser
    from ralph.cli.table import actions, entries

    entry = entries()[name]
    configure = getattr(import_module(f"ralph.cli.syntax.{entry.syntax}"), name.replace(" ", "_").replace("-", "_"))
    own = {word: action.summary for word, action in actions(name).items()}
    parser = Parser(prog=f"ralph {name}", text=configure.__doc__ or "", actions=own)
    configure(parser)
    return parser


def function_of(name: str) -> "Callable[[Namespace], int]":
    """The function that carries out a command."""
    from importlib import import_module

    from ralph.cli.table import entries

    module, _, function = entries()[name].run.partition(":")
    found: Callable[[Namespace], int] = getattr(import_module(f"ralph.cli.{module}"), function or "run")
    return found


def _guess(name: str) -> "tuple[str, ...]":
    """The command a guessed name stands for. Raises UsageError with a hint for any other name."""
    from ralph.cli.guesses import ALIASES, COMMANDS, closest
    from ralph.cli.table import older_names, shown
    from ralph.core.errors import UsageError
    from ralph.core.text import one_line

    if name in ALIASES:
        return ALIASES[name]
    near = closest(name, [*shown(), *(one for one in older_names() if " " not in one)])
    hint = f"did you mean `ralph {near}`?" if near else "`ralph help --all` lists the commands"
    raise UsageError(f"unknown command {one_line(repr(name), 60)}", hint=COMMANDS.get(name, hint))


def _report(error: "RalphError") -> int:
    from ralph.cli.output import fail
    from ralph.core.errors import BadData

    problems = error.problems if isinstance(error, BadData) else ()
    for problem in problems[:_MOST_PROBLEMS]:
        fail(str(problem), problem.hint)
    if not problems:
        fail(str(error), error.hint)
    elif len(problems) > _MOST_PROBLEMS:
        fail(f"and {len(problems) - _MOST_PROBLEMS} more problems")
    return int(error.exit_code)


def _report_trouble(error: OSError) -> int:
    """Whether this is the environment's fault: a full or failing disk, a missing permission, too many open files."""
    import errno

    from ralph.core.errors import SetupError
    from ralph.host.files import path_of

    if not _has_a_folder():
        return _report(SetupError("the current folder no longer exists", hint="change to another folder and try again"))
    if error.errno not in {getattr(errno, name, None) for name in _TROUBLE}:
        return _report_bug()
    where = f": {path}" if (path := path_of(error)) else ""
    return _report(SetupError(f"{error.strerror}{where}", hint="fix this, then run the command again"))


_TROUBLE = (
    "EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "ESTALE", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN",
    "ENAMETOOLONG", "ELOOP", "ENOTDIR", "EISDIR", "ETXTBSY", "ENXIO",
)  # fmt: skip


def _has_a_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is too dear here
    except FileNotFoundError:
        return False
    return True


def _report_bug() -> int:
    """Write the traceback to a log file and print its path."""
    from ralph.cli.output import fail
    from ralph.core.exit_codes import ExitCode

    fail(f"internal error: {sys.exc_info()[1]}", write_bug_log())
    return int(ExitCode.BUG)


def write_bug_log() -> str:
    """Write the traceback of the exception that is being handled. Returns where it is."""
    import time
    import traceback

    from ralph.host.files import make_folder, write_text
    from ralph.host.redaction import redact
    from ralph.state.names import ERROR_LOGS
    from ralph.state.places import state_home

    text = f"ralph {__version__}, Python {sys.version}\nargv: {sys.argv[1:]}\n\n{traceback.format_exc()}"
    try:
        folder = make_folder(state_home(os.environ) / ERROR_LOGS, private=True)
        log = folder / f"error-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.log"
        write_text(log, redact(text))
        return f"details are in {log}"
    except Exception:  # noqa: BLE001 - a full disk must not hide the first error
        return text
