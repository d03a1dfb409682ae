"""git: commands that write their output to a file, and file lists that another command acts on."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL
from ralph.hooks.guard.options import Options


def list_files(call: Invocation, args: list[str]) -> str:
    """The listed files are what a following `xargs rm` deletes."""
    words = [arg for arg in args if not arg.startswith("-")]
    return "".join(f"{LOCAL}/{word.strip('*')}\n" for word in words) or "*\n"


def changed_files(call: Invocation, args: list[str]) -> str | None:
    """Every command that shows a diff can write it to a file."""
    _write(call, Options(args, "", ("--output",)).all("--output"))
    return LOCAL + "\n" if "--name-only" in args else None


def patches(call: Invocation, args: list[str]) -> None:
    options = Options(args, "o", ("--output-directory", "--output"))
    _write(call, options.all("-o", "--output-directory", "--output"))


def archive(call: Invocation, args: list[str]) -> None:
    options = Options(args, "o", ("--output", "--exec", "--remote", "--prefix", "--format"))
    for program in options.all("--exec"):
        call.run_text(program)
    _write(call, options.all("-o", "--output"))


def bundle(call: Invocation, args: list[str]) -> None:
    if args[:1] == ["create"]:
        words = [arg for arg in args[1:] if not arg.startswith("-")]
        _write(call, [word for word in words[:1] if word != "-"])


def _write(call: Invocation, paths: list[str]) -> None:
    for path in paths:
        acts.write(call.shell, path, call.argv)
