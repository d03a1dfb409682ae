"""The front door: what every command promises, whatever it does."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ralph import __version__
from ralph.cli.grammar import Command, read_all
from ralph.cli.guesses import ALIASES, COMMANDS, OPTION_HINTS
from ralph.cli.main import parser_of
from ralph.cli.table import DAILY, entries, older_names, resolve, shown
from ralph.core.exit_codes import ExitCode
from support.cli import Completed, ralph, ralph_here

RALPH = [sys.executable, "-m", "ralph"]

# What `ralph --version` may load beyond what a bare interpreter has loaded.
FRONT_DOOR = {"ralph", "ralph.cli", "ralph.cli.main"}
OVERVIEW = FRONT_DOOR | {"ralph.cli.table"}


def families() -> list[Command]:
    """Every command and subcommand. Read when a test runs, so that one broken command does not hide the others."""
    return read_all().family()[1:]


# --- what it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--version", "-V", "--help", "-h", "help"])
def test_the_front_door_imports_almost_nothing(flag: str, tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from ralph.cli.main import main\n"
        f"code = main([{flag!r}])\n"
        "print('\\n'.join(sorted(set(sys.modules) - before)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(done.stderr.split()) == (FRONT_DOOR if flag in ("--version", "-V") else OVERVIEW)
    assert done.stdout


MOST_MODULES = 60
FEWER = {"memory add": 25, "pause": 25, "status": 25, "config set": 25, "task": 30}


@pytest.mark.parametrize("name", entries())
def test_help_loads_few_modules_and_no_feature(name: str, tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from ralph.cli.main import main\n"
        f"main({[*name.split(), '--help']!r})\n"
        "print('\\n'.join(sorted(set(sys.modules) - before)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = [module for module in done.stderr.split() if module.partition(".")[0] not in sys.stdlib_module_names]
    assert len(loaded) <= FEWER.get(name, MOST_MODULES)
    rooms = {"engine", "run", "workspace", "journal", "proof", "agents", "report", "planning", "memory", "session"}
    assert not rooms & {module.split(".")[1] for module in loaded if module.startswith("ralph.")}


# Each takes 2 to 50 ms, and none of them has to be there before an agent is started.
LATER = {
    "asyncio",
    "dataclasses",
    "difflib",
    "importlib.metadata",
    "importlib.resources",
    "inspect",
    "multiprocessing",
    "secrets",
    "shutil",
    "socket",
    "tempfile",
    "tree_sitter",
    "typing_extensions",
}


def test_a_run_starts_without_what_it_needs_later_or_never(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from ralph.cli.main import main\n"
        "main(['run'])\n"  # says that there is no plan here; by then everything is loaded
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "ralph.engine.loop" in done.stderr.split()
    assert LATER & set(done.stderr.split()) == set()


# --- version and help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[str(Path(sys.executable).with_name("ralph"))], RALPH], ids=["script", "module"])
def test_the_version_is_the_one_of_the_package(command: list[str]) -> None:
    assert subprocess.run([*command, "--version"], capture_output=True, check=True).stdout.decode() == (
        f"ralph {__version__}\n"
    )


def test_the_overview_fits_on_one_screen_and_says_where_the_rest_is(tmp_path: Path) -> None:
    done = ralph_here(cwd=tmp_path)
    lines = done.out.splitlines()
    assert (done.code, done.err) == (ExitCode.USAGE, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    rows = [match[1] for line in lines if (match := re.match("  ([a-z, ]{12}) [a-z]", line))]
    assert [row.rstrip() for row in rows] == list(DAILY)
    assert {name for names in DAILY for name in names.split(", ")} <= entries().keys()
    assert "ralph help --all" in done.out
    for call in (["--help"], ["-h"], ["help"]):
        assert ralph_here(*call, cwd=tmp_path) == Completed(0, done.out, "")


@pytest.mark.parametrize("call", [["help", "--all"], ["--help", "--all"]], ids=str)
def test_help_all_names_every_command_under_its_heading(call: list[str], tmp_path: Path) -> None:
    done = ralph_here(*call, cwd=tmp_path)
    assert done.code == 0
    for name, entry in shown().items():
        assert f"\n  {name:<12} {entry.summary}\n" in done.out
    for name in entries():
        assert all(word in done.out for word in name.split()) or name == "build"
    groups = dict.fromkeys(entry.group for entry in shown().values())
    assert [line[:-1] for line in done.out.splitlines() if line.endswith(":")] == list(groups)
    assert len(shown()) <= 40
    assert max(map(len, done.out.splitlines())) <= 80


COMMON = {
    "--once", "--dry-run", "--max-iterations", "--model", "--max-cost", "--max-time", "--review-when", "--review",
    "--worktree", "--story", "--detach", "--parallel",
}  # fmt: skip


def test_the_help_of_run_starts_with_the_common_options(tmp_path: Path) -> None:
    usage, first, *rest = re.split(
        r"^(?=options:|which plan:)", ralph_here("run", "--help", cwd=tmp_path).out, flags=re.M
    )
    assert usage.startswith("usage: ralph run [OPTIONS]\n")
    shown = set(re.findall(r"^  (?:-\w, |-\w \w+, )?(--[\w-]+)", first, flags=re.M)) - {"--help", "--skip-review"}
    assert shown == COMMON
    assert "--idle-timeout" in rest[0]


@pytest.mark.parametrize("name", entries())
def test_every_command_explains_itself_with_an_example(name: str, tmp_path: Path) -> None:
    done = ralph_here(*name.split(), "--help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: ralph {name}")
    assert f"\nexamples:\n  ralph {name}" in done.out or f"ralph {name}" in done.out.partition("\nexamples:\n")[2]
    assert ralph_here("help", *name.split(), cwd=tmp_path) == done


# The commands before there were families.
NAMES = (
    "init plan add fix task import check run watch build pause resume stop retry answer note status report log explain "
    "runs cost stats circuit verify proof exam audit rescue replay "
    "verify-sync export convert archive prompt route budget "
    "learn learnings compact config trust doctor preflight notify hooks plugin guard detect paths help completion"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_every_older_name_of_a_command_still_works(name: str, tmp_path: Path) -> None:
    command, rest = resolve([name, "--help"])
    assert (command, rest) == (older_names().get(name, name), ["--help"])
    assert ralph_here(name, "--help", cwd=tmp_path) == ralph_here(*command.split(), "--help", cwd=tmp_path)


def test_no_older_name_hides_a_command() -> None:
    assert not set(older_names()) & set(entries())
    assert len(older_names()) == sum(len(entry.names) for entry in entries().values())


def test_the_help_of_a_family_lists_its_actions(tmp_path: Path) -> None:
    for name in entries():
        family, _, action = name.partition(" ")
        if action:
            assert f"\n  {action:<12} {entries()[name].summary}\n" in ralph_here(family, "--help", cwd=tmp_path).out


def test_every_subcommand_explains_itself_with_an_example(tmp_path: Path) -> None:
    for command in families():
        assert command.summary, command.name
        assert command.examples, command.name
        assert ralph_here(*command.path, "--help", cwd=tmp_path).code == 0, command.name


def test_every_example_is_a_command_line_that_is_accepted() -> None:
    for command in families():
        for example in command.examples:
            words = shlex.split(example, comments=True)
            if words[0] != "ralph":
                continue
            ends = [at for at, word in enumerate(words) if word in ("|", ">", ">>", "<", "&&", "||", ";")]
            name, rest = resolve(words[1 : ends[0] if ends else None])
            assert name.split()[0] == command.path[0], example
            parser_of(name).parse_args(rest)


@pytest.mark.parametrize("name", ["check", "config", "doctor", "status", "trust"])
def test_every_command_that_shows_state_can_say_it_in_json(name: str) -> None:
    found = next(command for command in families() if command.path == (name,))
    assert any("--json" in option.flags for one in found.family() for option in one.options), name


# --- wrong usage -----------------------------------------------------------------------------------------------------

WRONG = {
    "no command": [],
    "unknown command": ["nope"],
    "unknown command for help": ["help", "nope"],
    "unknown option": ["status", "--nope"],
    "unknown option of a subcommand": ["task", "list", "--nope"],
    "missing argument": ["task", "show"],
    "missing subcommand": ["task"],
    "bad choice": ["task", "list", "--state", "nope"],
    "bad subcommand": ["task", "nope"],
    "too many arguments": ["paths", "nope", "nope"],
    "abbreviated option": ["status", "--js"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_exits_64_and_says_what_to_do(arguments: list[str], tmp_path: Path) -> None:
    done = ralph_here(*arguments, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    if arguments:
        assert done.out == ""
        assert done.err.startswith("ralph: ")
        assert "\n  hint: " in done.err


MEANT = {
    "`ralph status`": ["stauts"],
    "`ralph task`": ["tasks"],
    "--json": ["status", "--jsno"],
    "--state": ["task", "list", "--staet"],
    "--project-dir": ["status", "--project-dri=x"],
    "list": ["task", "lits"],
    "in_progress": ["task", "list", "--state", "inprogress"],
}


@pytest.mark.parametrize("meant", MEANT)
def test_a_typing_mistake_gets_the_closest_right_word(meant: str, tmp_path: Path) -> None:
    assert f"did you mean {meant}?" in ralph_here(*MEANT[meant], cwd=tmp_path).err


GUESSES = {
    "start": "`ralph run` starts a run",
    "new": "`ralph init NAME` starts a plan",
    "undo": "`git revert COMMIT`",
    "continue": "`ralph run` continues",
    "setup": "`ralph init` sets up a project",
    "merge": "`ralph stream merge NAME`",
}


@pytest.mark.parametrize("guess", GUESSES)
def test_a_guessed_command_that_would_write_gets_a_hint(guess: str, tmp_path: Path) -> None:
    done = ralph_here(guess, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert GUESSES[guess] in done.err.partition("hint: ")[2]


def test_every_hint_names_commands_and_options_that_exist() -> None:
    for text in (*COMMANDS.values(), *OPTION_HINTS.values()):
        for call in re.findall(r"`ralph ([^`]+)`", text):
            words = [word for word in call.split() if word.islower() or word.startswith("-")]
            assert resolve(words)[0] or words[0] == "--version", text
            if words[0] in entries():
                flags = {flag for one in families() if one.path[0] == words[0] for o in one.options for flag in o.flags}
                assert all(word in flags for word in words if word.startswith("-")), text
    assert not set(COMMANDS) & set(entries())
    assert not set(ALIASES) & (set(entries()) | set(COMMANDS))


@pytest.mark.parametrize("guess", ["list", "ls", "logs", "tail", "history", "lint"])
def test_a_guessed_command_that_only_reads_is_run(guess: str, tmp_path: Path) -> None:
    assert ralph_here("init", "--layout", "tasks.json", "demo", cwd=tmp_path).code == 0
    done, meant = ralph_here(guess, cwd=tmp_path), ralph_here(*ALIASES[guess], cwd=tmp_path)
    assert done == meant
    assert "unknown command" not in done.err


@pytest.mark.parametrize("name", [*ALIASES, *COMMANDS])
def test_no_guess_hides_a_command(name: str) -> None:
    assert name not in entries()


@pytest.mark.parametrize(
    ("call", "value", "hint"),
    [
        (["record", "--svg"], "--svg needs a value: FILE", "see `ralph record --help`"),
        (["report", "--html", "--json"], "--html needs a value: FILE", "see `ralph report --help`"),
        (["run", "-d"], "--project-dir needs a value: DIR", "see `ralph run --help`"),
        (["report", "--html", "-page"], "--html needs a value: FILE", "a dash as --html=-VALUE"),
    ],
    ids=str,
)
def test_an_option_without_its_value_is_told_which_one_it_needs(
    call: list[str], value: str, hint: str, tmp_path: Path
) -> None:
    done = ralph_here(*call, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert value in done.err
    assert hint in done.err
    assert ("dash" in done.err) == ("dash" in hint)


@pytest.mark.parametrize("far", ["zebra", "frobnicate", "xyz", "deploy"])
def test_a_word_that_is_like_nothing_gets_no_far_fetched_suggestion(far: str, tmp_path: Path) -> None:
    assert "did you mean" not in ralph_here(far, cwd=tmp_path).err
    assert "did you mean" not in ralph_here("run", f"--{far}", cwd=tmp_path).err


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (["run", "--name", "x"], "did you mean --feature?"),
        (["run", "--no-commit"], "--worktree"),
        (["status", "--project", "x"], "did you mean --project-dir?"),
        (["prompt", "--only", "US-001"], "did you mean --story?"),
        (["check", "--story", "US-001"], "`ralph task show ID`"),
    ],
    ids=str,
)
def test_a_guessed_option_leads_somewhere(call: list[str], hint: str, tmp_path: Path) -> None:
    done = ralph_here(*call, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert hint in done.err.partition("hint: ")[2]


# --- streams ---------------------------------------------------------------------------------------------------------


def on_a_terminal(arguments: list[str], cwd: Path, **environment: str) -> str:
    """Both output streams of a command that runs on a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [*RALPH, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    text = b""
    try:
        while data := os.read(ours, 4096):
            text += data
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    done.wait()
    return text.decode()


def test_there_is_colour_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    assert "\x1b[31m" in on_a_terminal(["nope"], tmp_path)
    assert "\x1b" not in ralph("nope", cwd=tmp_path).err


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colour_can_be_turned_off(environment: dict[str, str], tmp_path: Path) -> None:
    text = on_a_terminal(["nope"], tmp_path, **environment)
    assert "unknown command" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["task", "--help"], ["completion", "bash"]], ids=str)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_reader_that_leaves_early_is_no_error(arguments: list[str], unbuffered: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*RALPH, *arguments], cwd=tmp_path, stdout=writing, stderr=-1, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*RALPH, "--help"], cwd=tmp_path, stdout=full, stderr=-1, check=False)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert done.stderr.decode() == "ralph: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("--version", 0), ("task --help", 0), ("nope", 64)])
def test_closed_streams_are_no_error(closed: str, arguments: str, code: int, tmp_path: Path) -> None:
    line = f"{shlex.join(RALPH)} {arguments} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


ODD = [b"\xff\xfe", "\N{PILE OF POO}".encode(), b"\x1b[31m\x9b31m", b"a\nb\r\tc"]


@pytest.mark.parametrize("argument", ODD, ids=repr)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_any_argument_can_be_talked_about(argument: bytes, locale: str, tmp_path: Path) -> None:
    for arguments in ([argument], ["status", argument], ["status", "-d", argument], ["task", "show", argument]):
        done = ralph(*arguments, cwd=tmp_path, env={"LC_ALL": locale, "PYTHONIOENCODING": "", "PYTHONUTF8": "0"})
        assert done.code not in (0, ExitCode.BUG), done.err
        assert "\x1b" not in done.err
        assert "Traceback" not in done.err


# --- an error inside Ralph -------------------------------------------------------------------------------------------

BROKEN = """
import sys
import boom
sys.modules["ralph.cli.status"] = boom
from ralph.cli.main import entry
sys.argv = ["ralph", "status"]
entry()
"""


def boom(statement: str, folder: Path, **environment: str) -> Completed:
    """Run a command whose work is this one statement."""
    (folder / "boom.py").write_text(f"def run(args):\n    {statement}\n")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN],
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return Completed(done.returncode, done.stdout, done.stderr)


def test_an_error_inside_ralph_is_one_sentence_and_a_log(tmp_path: Path) -> None:
    done = boom("raise ZeroDivisionError('of all things')", tmp_path)
    assert done.code == ExitCode.BUG
    sentence, hint = done.err.splitlines()
    assert sentence == "ralph: internal error: of all things"
    log = Path(hint.partition("details are in ")[2])
    assert log.is_relative_to(os.environ["RALPH_STATE_HOME"])
    text = log.read_text()
    assert "ZeroDivisionError: of all things" in text
    assert "argv: ['status']" in text
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_an_error_is_told_even_when_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = boom("1 / 0", tmp_path, RALPH_STATE_HOME=str(tmp_path / "file" / "state"))
    assert done.code == ExitCode.BUG
    assert "ZeroDivisionError" in done.err


def test_an_interruption_is_quiet(tmp_path: Path) -> None:
    done = boom("raise KeyboardInterrupt", tmp_path)
    assert (done.code, done.err) == (ExitCode.INTERRUPTED, "")


def test_what_a_command_printed_before_an_error_is_kept(tmp_path: Path) -> None:
    done = boom("print('first'); raise ValueError('then')", tmp_path)
    assert done.out == "first\n"


@pytest.mark.parametrize(("word", "said"), [("EACCES", "Permission denied"), ("ENOSPC", "No space left on device")])
def test_trouble_with_the_system_is_no_bug(word: str, said: str, tmp_path: Path) -> None:
    done = boom(f"import errno, os; raise OSError(errno.{word}, os.strerror(errno.{word}), 'some/file')", tmp_path)
    assert done.code == ExitCode.ENVIRONMENT
    assert done.err.splitlines()[0] == f"ralph: {said}: some/file"
    assert "hint: " in done.err


def test_a_system_call_that_was_used_wrongly_is_a_bug(tmp_path: Path) -> None:
    assert boom("import errno; raise OSError(errno.EBADF, 'of all things')", tmp_path).code == ExitCode.BUG


def test_a_folder_that_is_gone_is_no_bug(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir "$PWD"; {shlex.join(RALPH)} status'
    done = subprocess.run(["sh", "-c", line], cwd=gone, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "the current folder no longer exists" in done.stderr
