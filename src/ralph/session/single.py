"""One planning session: a fresh agent that may read everything and change nothing.

Clients that support it get no tools that change anything. In any case the tree is compared afterwards; differences are
saved under a rescue ref and reverted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.budget.run_budget import Account, RunBudget
from ralph.budget.settings import budget_of, ledger_of, prices_of
from ralph.config.schema import Config
from ralph.core.agent import AgentEvent, Outcome, Result, Text, Trouble
from ralph.core.errors import LockHeld, SetupError
from ralph.core.evidence import Ended, How
from ralph.core.exit_codes import ExitCode
from ralph.core.ports import Agent, HookFiles, Launch, Reader, Rights, Session, Task
from ralph.core.rules import Patience
from ralph.core.text import one_line
from ralph.engine.agent_run import AgentRunner
from ralph.host.files import make_folder, write_bytes
from ralph.host.git.repo import Repo
from ralph.host.git.work_tree import GitWorkTree
from ralph.host.locks import Lock, Owner
from ralph.host.process.signals import StopSignal
from ralph.host.process.tree import identify
from ralph.journal.records import Journal, Listener
from ralph.session.hook_policy import as_json, client_settings, guard_section, writable_places
from ralph.session.limits import allowance_of
from ralph.state.names import CLIENT_SETTINGS, GIT_LOCK, HOOK_SESSIONS, INDEX, POLICY, RAW, RECORDS

_MOST = 2_000_000


class Overheard:
    """The same agent, for one process."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._texts: list[str] = []
        self._size = 0
        self._result = ""

    @property
    def NAME(self) -> str:
        return self._agent.NAME

    @property
    def TITLE(self) -> str:
        return self._agent.TITLE

    @property
    def ENV(self) -> tuple[str, ...]:
        return self._agent.ENV

    @property
    def HOOKS(self) -> bool:
        return self._agent.HOOKS

    @property
    def REPORTS_CALLS(self) -> bool:
        return self._agent.REPORTS_CALLS

    def find(self, session: Session, path: str) -> str:
        return self._agent.find(session, path)

    def launch(self, session: Session, program: str) -> Launch:
        return self._agent.launch(session, program)

    def reader(self) -> Reader:
        read = self._agent.reader()

        def listen(line: bytes) -> Iterator[AgentEvent]:
            for event in read(line):
                self._hear(event)
                yield event

        return listen

    @property
    def answer(self) -> str:
        """Its result, or its whole output if its client reports no result."""
        return self._result if self._result.strip() else "\n".join(self._texts)

    def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, Result):
            self._result = event.text
        elif isinstance(event, Text) and self._size < _MOST:
            self._size += len(event.text)
            self._texts.append(event.text)


_LOOKS = "Read,Grep,Glob"
_GIT = ("log", "show", "diff", "status", "ls-files", "blame")
TOOLS = f"{_LOOKS},Bash"
ALLOWED = ",".join([_LOOKS, *(f"Bash(git {word}{end})" for word in _GIT for end in ("", " *"))])
DISALLOWED = "Edit,Write,MultiEdit,NotebookEdit"
_WRITES = ({"program": "git", "args": "*--output*"}, {"program": "git", "args": "*--ext-diff*"})
"""Commands that look like reading, but write a file or run a program."""
_OPUS = {"claude": "opus"}
_FIXES = {
    Trouble.AUTHENTICATION: "log in to the agent, or set its API key",
    Trouble.REFUSED: "log in to the agent, or set its API key",
    Trouble.BILLING: "add credit to the agent's account, or use another account or agent",
    Trouble.MODEL: "choose another model with --model, or set planning.model",
    Trouble.LIMIT: "wait until the limit resets",
    Trouble.BUDGET: "raise the budget, or wait until it resets; `ralph runs cost` shows what was spent",
    Trouble.UNGUARDED: "make sure the client runs hooks (no --bare, no disableAllHooks), or set canary to warn or off",
}


class Interrupted(SetupError):
    """Stopped by the user or the system. The answers so far are kept."""

    def __init__(self, code: ExitCode, hint: str) -> None:
        super().__init__("stopped; nothing in the workspace changed", hint=hint)
        self.exit_code = code


class Said(Struct, frozen=True):
    text: str
    cost_usd: float | None = None
    put_back: tuple[str, ...] = ()
    """Files that the agent changed."""
    rescue: str = ""
    """The rescue ref with its version of them."""


def planning_agent(config: Config) -> str:
    return config.planning.agent or config.agent.name


def planning_model(config: Config) -> str:
    return config.planning.model or _OPUS.get(planning_agent(config), config.agent.model)


class Sessions:
    """The sessions of one call of `ralph plan`, `add` or `fix`. Each is a separate process."""

    def __init__(
        self,
        *,
        root: Path,
        repo: Repo | None,
        config: Config,
        env: Mapping[str, str],
        folder: Path,
        kind: str,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self._root = root
        self._repo = repo
        self._config = config
        self._env = env
        self._folder = make_folder(folder, private=True)
        self._kind = kind
        self._listeners = listeners
        self._count = 0

    @property
    def raw(self) -> Path:
        """The complete output of the agents."""
        return self._folder / RAW

    def ask(self, prompt: str, schema: str) -> Said:
        self._count += 1
        heard = Overheard(find_agent(planning_agent(self._config)))
        heard.find(self._session(prompt, schema, None), self._env.get("PATH", ""))  # raises if missing
        # Only here: while the user types, Ctrl-C ends the program at once.
        with StopSignal() as stop:
            with self._unchanged(stop) as changes:
                ended, outcome = self._run(heard, prompt, schema, stop)
            if stop.requested:
                raise Interrupted(
                    stop.exit_code or ExitCode.INTERRUPTED, "your answers are kept; continue with --resume-draft"
                )
        self._refuse_trouble(ended, outcome, heard.answer)
        files, rescue = changes[0] if changes else ((), "")
        return Said(heard.answer, outcome.cost_usd, files, rescue)

    def _run(self, heard: Overheard, prompt: str, schema: str, stop: StopSignal) -> tuple[Ended, Outcome]:
        journal = Journal(self._folder / f"events-{self._count:04}.jsonl", time.time)
        for listener in self._listeners:
            journal.listen(listener)
        config = self._config
        runner = AgentRunner(
            lambda _: heard,
            journal,
            stop,
            run=self._folder.name,
            raw_folder=self.raw,
            env=self._env,
            wanted_env=config.agent.env,
            pass_all_env=config.env == "caller",
            promise="",
            canary=config.canary,
            allowance=allowance_of(config.agent),
        )
        hooks = self._hooks() if heard.HOOKS else None
        try:
            patience = Patience(total=config.timeout or None, idle=config.idle_timeout or None)
            return self._run_budget(journal, runner)(self._session(prompt, schema, hooks), self._kind, patience)
        finally:
            journal.close()

    def _run_budget(self, journal: Journal, run_agent: AgentRunner) -> RunBudget:
        """The cost of planning is in the ledger, and counts towards the budgets of the day and the workspace."""
        ledger = ledger_of(self._root, self._repo, self._env)
        prices = cache(lambda: prices_of(self._config, self._root))
        account = Account(self._folder.name, self._kind, budget_of(self._config), ledger, prices)
        return RunBudget(account, journal, run_agent, time.time)

    def _session(self, prompt: str, schema: str, hooks: HookFiles | None) -> Session:
        config = self._config.agent
        own = planning_agent(self._config) == config.name
        return Session(
            prompt=prompt,
            cwd=self._root,
            model=planning_model(self._config),
            rights=Rights(
                tools=TOOLS,
                allowed_tools=ALLOWED,
                disallowed_tools=DISALLOWED,
                is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
            ),
            task=Task(story=self._kind, title=self._kind, iteration=self._count, attempt=self._count),
            schema=schema,
            fallback_model=config.fallback_model,
            budget_usd=config.budget_usd,
            keep=config.keep_sessions,
            command=self._config.planning.command or (config.command if own else ()),
            script=self._root / config.script if config.script else None,
            hooks=hooks,
        )

    def _hooks(self) -> HookFiles:
        """The command guard and the hooks' canary. Nothing may be edited, so read-before-edit is not needed."""
        state = make_folder(self._folder / HOOK_SESSIONS / f"{self._count:04}", private=True)
        nonce = os.urandom(16).hex()
        guard = guard_section(self._config)
        policy = {
            "nonce": nonce,
            "pid": os.getpid(),
            "pid_start": me.start if (me := identify(os.getpid())) else "",
            "run": self._folder.name,
            "mode": "plan",
            "workspace": str(self._root),
            "state": str(state),
            "records": str(state / RECORDS),
            "writable": writable_places(self._env),
            "protected": ["*"],
            "guard": guard | {"deny": [*guard["deny"], *_WRITES], "enabled": True},
        }
        write_bytes(state / POLICY, as_json(policy), mode=0o600, durable=False)
        write_bytes(
            state / CLIENT_SETTINGS, msgspec.json.encode(client_settings(strict=True)), mode=0o600, durable=False
        )
        env = {"RALPH_POLICY": str(state / POLICY), "RALPH_NONCE": nonce}
        return HookFiles(state / CLIENT_SETTINGS, env, state / RECORDS, state)

    @contextlib.contextmanager
    def _unchanged(self, stop: StopSignal) -> Iterator[list[tuple[tuple[str, ...], str]]]:
        """Compare the tree before and after. If a run is active in it, the run judges the changes."""
        found: list[tuple[tuple[str, ...], str]] = []
        if self._repo is None:
            yield found
            return
        lock = Lock(self._repo.git_dir / GIT_LOCK)
        try:
            lock.acquire(Owner.here(self._folder.name))
        except LockHeld:
            yield found
            return
        try:
            tree = GitWorkTree(self._repo, self._folder / INDEX, {}, stop)
            before = tree.checkpoint()
            try:
                yield found
            finally:
                after = tree.inspect(before)
                if after.changed or after.commits or not after.sound:
                    message = f"ralph: changes made by the {self._kind} agent"
                    done = tree.roll_back(before, f"{self._folder.name}/{self._count}", message)
                    found.append((after.changed or after.notices, done.ref))
        finally:
            lock.release()

    def _refuse_trouble(self, ended: Ended, outcome: Outcome, answer: str) -> None:
        """An answer counts however the client ended; if there is none, raise an error that says why."""
        trouble = outcome.trouble
        if trouble in _FIXES:
            said = one_line(outcome.detail or outcome.text or str(trouble), 300)
            error = SetupError(f"the planning agent could not run: {said}", hint=_FIXES[trouble])
            if trouble is Trouble.LIMIT:
                error.exit_code = ExitCode.USAGE_LIMIT
            raise error
        if answer.strip() and trouble in (None, Trouble.PERMISSION, Trouble.EMPTY):
            return
        if trouble in (Trouble.TRANSPORT, Trouble.CONTEXT, Trouble.OTHER) and not outcome.ok:
            raise SetupError(
                f"the planning agent gave no answer: {one_line(outcome.detail or str(trouble), 300)}",
                hint="try again; --resume-draft continues with your answers",
            )
        if ended.how is How.FAILED_TO_START or not ended.well:
            said = ended.detail or f"it ended with {ended.how.value}, exit code {ended.code}"
            raise SetupError(f"the planning agent failed: {one_line(said, 300)}", hint=f"its output is in {self.raw}")
