"""Actions for hostile and broken agents. A script loads them with `acts: /…/tests/support/stunts.py`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

from ralph.agents.acts import IDENTITY, Action, commit, ignore_signals, remove
from ralph.agents.stage import Leave, Stage

_LONG = 600.0
_CHUNK = 64 * 1024
_LINE = b"the quick brown fox jumps over the lazy dog, again and again and again, and never gets anywhere\n"


def _git(stage: Stage, *words: str) -> None:
    stage.command(["git", *words])


class Amend(Action, frozen=True):
    """Rewrites the last commit, regardless of its author."""

    message: str = "Rewritten by the agent"

    def play(self, stage: Stage) -> None:
        _git(stage, "add", "--all")
        commit(stage, "--amend", "--message", self.message)


class Stash(Action, frozen=True):
    def play(self, stage: Stage) -> None:
        _git(stage, *IDENTITY, "stash", "--include-untracked")


class Reset(Action, frozen=True):
    to: str = "HEAD~1"
    hard: bool = True

    def play(self, stage: Stage) -> None:
        _git(stage, "reset", "--quiet", "--hard" if self.hard else "--mixed", self.to)


class Switch(Action, frozen=True):
    branch: str
    create: bool = True

    def play(self, stage: Stage) -> None:
        _git(stage, "switch", "--quiet", *(["--create"] if self.create else []), self.branch)


class DeleteGit(Action, frozen=True):
    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": "rm -rf .git"})
        remove(Path(".git"))
        stage.end(call)


class ReplaceGit(Action, frozen=True):
    """A new repository in place of the old one; or, with `to`, a file that points to another one."""

    to: str = ""

    def play(self, stage: Stage) -> None:
        remove(Path(".git"))
        if self.to:
            call = stage.begin("Bash", {"command": f"echo 'gitdir: {self.to}' > .git"})
            Path(".git").write_text(f"gitdir: {self.to}\n", encoding="utf-8")
            stage.end(call)
            return
        _git(stage, "init", "--quiet")
        _git(stage, "add", "--all")
        commit(stage, "--message", "A new history")


class GitConfig(Action, frozen=True):
    key: str = "core.fsmonitor"
    value: str = "touch fsmonitor-ran"

    def play(self, stage: Stage) -> None:
        _git(stage, "config", "--local", self.key, self.value)


class GitHook(Action, frozen=True):
    name: str = "pre-commit"
    script: str = "#!/bin/sh\ntouch hook-ran\n"

    def play(self, stage: Stage) -> None:
        path = Path(".git", "hooks", self.name)
        call = stage.edit("Write", str(path), content=self.script)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.script, encoding="utf-8")
        path.chmod(0o755)
        stage.end(call)


class LinkWorkspace(Action, frozen=True):
    """Moves the workspace elsewhere and leaves a link in its place."""

    to: str = ""

    def play(self, stage: Stage) -> None:
        target = stage.cwd.parent / (self.to or f"{stage.cwd.name}.moved")
        call = stage.begin("Bash", {"command": f"mv {stage.cwd} {target} && ln -s {target} {stage.cwd}"})
        os.rename(stage.cwd, target)  # noqa: PTH104 - one spelling for both lines
        os.symlink(target, stage.cwd)  # noqa: PTH211
        stage.end(call)


class Corrupt(Action, frozen=True):
    how: Literal["truncate", "empty", "invalid", "binary", "delete", "fifo", "folder", "symlink", "unreadable"]
    path: str = ""
    to: str = os.devnull
    """Where the link points."""

    def play(self, stage: Stage) -> None:
        path = Path(self.path) if self.path else stage.plan
        call = stage.begin("Bash", {"command": f"{self.how} {path}"})
        match self.how:
            case "truncate":
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2])
            case "empty":
                path.write_bytes(b"")
            case "invalid":
                path.write_text('{"this is": [not a plan\n', encoding="utf-8")
            case "binary":
                path.write_bytes(b"\xff\xfe\0\x80" * 256)
            case "unreadable":
                path.chmod(0)
            case _:
                self._replace(path)
        stage.end(call)

    def _replace(self, path: Path) -> None:
        remove(path)
        match self.how:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "symlink":
                path.symlink_to(self.to)


class Linger(Action, frozen=True):
    """Keeps running for a while after its final result."""

    seconds: float = _LONG

    def play(self, stage: Stage) -> None:
        stage.linger = self.seconds


class Daemon(Action, frozen=True):
    """Leaves a process behind, in a separate session and without a parent; it may write a file `after` a while."""

    seconds: float = _LONG
    path: str = ""
    text: str = "written by what was left behind\n"
    after: float = 0
    ignore_term: bool = False
    keep_output: bool = False

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"nohup sleep {self.seconds:g} &"})
        if child := os.fork():
            os.waitpid(child, 0)
            stage.end(call)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        try:
            self._live()
        finally:
            os._exit(0)

    def _live(self) -> None:
        if not self.keep_output:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
        if self.ignore_term:
            ignore_signals()
        until = time.monotonic() + self.seconds
        if self.path:
            time.sleep(self.after)
            Path(self.path).write_text(self.text, encoding="utf-8")
        time.sleep(max(0.0, until - time.monotonic()))


class Print(Action, frozen=True):
    """Bytes that are not an event of the stream."""

    text: str = ""
    size: int = 0
    """Bytes of padding."""
    kind: Literal["lines", "line", "event", "invalid_utf8", "nul"] = "lines"
    newline: bool = True
    to: Literal["stdout", "stderr"] = "stdout"

    def play(self, stage: Stage) -> None:
        where = 1 if self.to == "stdout" else 2
        if self.text:
            stage.write(self.text.encode(), where)
        if self.size:
            before, pattern, after = self._parts()
            stage.write(before, where)
            chunk = pattern * (_CHUNK // len(pattern))
            whole, rest = divmod(self.size, len(chunk))
            for _ in range(whole):
                stage.write(chunk, where)
            stage.write(chunk[:rest], where)
            stage.write(after, where)
        if self.newline:
            stage.write(b"\n", where)

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        if self.kind == "event":  # one event of the stream, however large
            start = b'{"type":"assistant","message":{"content":[{"type":"text","text":"'
            return start, b"x", b'"}]}}'
        patterns = {"lines": _LINE, "line": b"x", "invalid_utf8": b"\xff\xfe\xc3(", "nul": b"\0"}
        return b"", patterns[self.kind], b""


class CloseOutput(Action, frozen=True):
    """Closes stdout and continues: the end of output is not the end of the agent."""

    def play(self, stage: Stage) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


class ApiError(Action, frozen=True):
    """An API error after a number of retries; status 0: no connection."""

    status: int
    retries: int = 0

    def play(self, stage: Stage) -> None:
        error, server = self._names()
        for attempt in range(1, self.retries + 1):
            stage.emit(
                {
                    "type": "system",
                    "subtype": "api_retry",
                    "attempt": attempt,
                    "max_retries": self.retries,
                    "retry_delay_ms": 0,
                    "error_status": self.status or None,
                    "error": error,
                }
            )
        text = f"API Error: {self.status or 'Connection refused'}"
        fields: dict[str, Any] = {"api_error_status": self.status or None, **server}
        stage.synthetic(text, error=error, **fields)
        stage.fail(text, **fields)

    def _names(self) -> tuple[str, dict[str, str]]:
        """The client's name for the error, and the server's."""
        match self.status:
            case 0:
                return "server_error", {"api_error": "connection_failed"}
            case 401:
                return "authentication_failed", {"api_error_type": "authentication_error"}
            case 403:
                return "authentication_failed", {"api_error_type": "permission_error"}
            case 404:
                return "model_not_found", {"api_error_type": "not_found_error"}
            case 429:
                return "rate_limit", {"api_error_type": "rate_limit_error"}
            case 529:
                return "server_error", {"api_error_type": "overloaded_error"}
            case status if status >= 500:
                return "server_error", {"api_error_type": "api_error"}
            case _:
                return "invalid_request", {"api_error_type": "invalid_request_error"}


class Empty(Action, frozen=True):
    """Ends successfully without any output."""

    def play(self, stage: Stage) -> None:
        stage.result(result="")
        raise Leave(0)


class GiveUp(Action, frozen=True):
    """The client stops on its own."""

    reason: Literal["max_turns", "max_budget", "context", "interrupted"] = "max_turns"

    def play(self, stage: Stage) -> None:
        if self.reason == "context":
            text = "Prompt is too long"
            stage.synthetic(text, error="invalid_request", api_error_status=400)
            stage.fail(text, terminal="prompt_too_long", api_error_status=400)
        subtype, terminal, text = {
            "max_turns": ("error_max_turns", "max_turns", "Reached maximum number of turns (2)"),
            "max_budget": ("error_max_budget_usd", "budget_exhausted", "Reached maximum budget ($0.5)"),
            "interrupted": ("error_during_execution", "aborted_tools", "interrupted"),
        }[self.reason]
        stage.fail("", terminal=terminal, subtype=subtype, errors=[text])


ACTIONS: dict[str, type[Action]] = {
    "amend": Amend,
    "stash": Stash,
    "reset": Reset,
    "switch": Switch,
    "delete_git": DeleteGit,
    "replace_git": ReplaceGit,
    "git_config": GitConfig,
    "git_hook": GitHook,
    "link_workspace": LinkWorkspace,
    "corrupt": Corrupt,
    "linger": Linger,
    "daemon": Daemon,
    "print": Print,
    "close_output": CloseOutput,
    "api_error": ApiError,
    "empty": Empty,
    "give_up": GiveUp,
}
