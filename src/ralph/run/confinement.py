"""The sandbox of one run: what is visible to an agent, to a check and to the set-up, and what their network allows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ralph.agents.registry import agent as find_agent
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Config, all_checks
from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.events import OUTSIDE_NOTE, AnyEvent, HostRefused, Noted
from ralph.core.ports import Agent, Launch, Session
from ralph.core.text import one_line
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.commit_hooks import HookCall
from ralph.host.git.repo import Repo
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.start import Allowance, run, shell
from ralph.host.removal import remove_tree
from ralph.proof.place import telling_line
from ralph.run.agent_git import AgentGit
from ralph.run.spec import RunSpec, run_folder
from ralph.sandbox.bwrap import own_folders
from ralph.sandbox.choice import Chosen, choose
from ralph.sandbox.decisions import summary
from ralph.sandbox.home import own_path, prepare_home, program_places, readable_folders
from ralph.sandbox.login import login
from ralph.sandbox.wall import Mount, Quota, Wall, Walled
from ralph.session.choice import named_agents
from ralph.session.hook_policy import PROTECTED, allowed_folders
from ralph.session.limits import sandbox_allowance
from ralph.state.clones import Clone
from ralph.state.names import (
    AGENT_GIT,
    AGENT_HOME,
    AGENT_OBJECTS,
    CHECK_HOME,
    CHECKS_OUTSIDE,
    CLIENT_SETTINGS,
    GIT_TRACE,
    HOOK_SESSIONS,
    INDEX,
    NETWORK_LOG,
    POLICY,
    SANDBOX,
    SANDBOX_SETUP,
)
from ralph.state.places import checkout_folder, home, outer_state_home, plan_state, workspace_state
from ralph.state.runs import journal_path

if TYPE_CHECKING:
    from ralph.sandbox.network import Network

AGENTS, CHECKS = "agent", "checks"
"""The two lists of hosts."""
_UNSET = (Kind.DEFAULT, Kind.PROFILE)
_MOST_REFUSALS = 50
SETUP_SCRIPT = "sandbox/setup.sh"
_GIT_READ_ONLY = (".git/hooks", ".git/config", ".git/info")


class Confinement:
    """`checkout`: the user's own, if the run works in a clone of it."""

    def __init__(
        self,
        chosen: Chosen,
        spec: RunSpec,
        env: Mapping[str, str],
        network: Network | None,
        checkout: Path | None,
        *,
        may_excuse: bool = False,
    ) -> None:
        assert chosen.backend is not None
        self._backend, self._program = chosen.backend, chosen.program
        self._spec, self._env, self._network = spec, env, network
        self._may_excuse, self._excused = may_excuse, False
        self.write: Callable[[AnyEvent], object] = lambda event: None
        """The journal."""
        self._checkout = checkout
        self._folder = workspace_state(spec.ref.root, env) / SANDBOX
        self.home, self.check_home = self._folder / AGENT_HOME, self._folder / CHECK_HOME
        self._shared: tuple[Path, ...] = ()
        """Folders that one sandbox for agents and checks has to have from the start."""
        if getattr(self._backend, "KEEPS", False):
            self._shared = (spec.repo.root, checkout_folder(workspace_state(spec.ref.root, env), env))
        self._git: AgentGit | None = None
        if (checkout is not None or spec.repo.link) and self._backend.MOUNTS:
            scratch = self._folder / AGENT_GIT / plan_state(spec.ref, env).name
            trace = run_folder(spec.ref, spec.run, env) / GIT_TRACE
            self._git = AgentGit(spec.repo, scratch, self._folder / AGENT_OBJECTS, trace)

    @property
    def has_own_processes(self) -> bool:
        """Processes inside do not see those outside."""
        return self._backend.MOUNTS

    @property
    def alias(self) -> Path | None:
        """The path of the user's checkout, if an agent finds its clone there, too."""
        return self._checkout if self._git is not None else None

    @property
    def allowance(self) -> Allowance:
        folders = (self._spec.repo.root, self.home)
        return sandbox_allowance(self._spec.config.agent, quota_of(self._spec.config), folders)

    def open(self, tell: Callable[[str], None]) -> None:
        """Make the home folders. An agent's is not that of checks: what it leaves there must not decide them."""
        if (prepare := getattr(self._backend, "prepare", None)) is not None:  # an image to pull or build
            prepare(self._program, self._spec.config.sandbox.image, tell)
        for own in (self.home, self.check_home):
            prepare_home(make_folder(own, private=True), self._env)
            for path in self._spec.config.sandbox.files:
                if path.startswith("~/"):
                    _copy_file(home(self._env) / path[2:], own_path(own, path[2:]))

    @contextmanager
    def agent(self, session: Session, agent: Agent, launch: Launch) -> Iterator[Enclosure]:
        """For one session: a login that works, and a repository of its own."""
        if self._git is not None:
            self._git.prepare()
        self._may_excuse = False
        with login(getattr(agent, "LOGIN", ()), home(self._env), self.home, self._env):
            yield self._walled(self._agent_wall(session, agent, launch), AGENTS)
        if self._git is not None:
            name = f"{self._spec.run}/{session.task.iteration:04}"
            for notice in self._git.collect(self._git_enclosure(self._git), name):
                self.write(Noted(notice, warning=True))
        self._report_refusals(session.task.iteration)

    def _report_refusals(self, iteration: int) -> None:
        groups = summary(self._network.refused()) if self._network is not None else ()
        for one in groups[:_MOST_REFUSALS]:
            self.write(HostRefused(iteration, one.host, one.port, one.why, one.count))

    def around_checkout(self, folder: Path, needed: Iterable[Path], hidden: Iterable[Path]) -> Enclosure | None:
        """For checks: no login, and only the hosts that the settings list."""
        if self._excused:
            return None
        readable = self._outside(needed)
        wall = Wall(
            home=home(self._env),
            writable=tuple(dict.fromkeys((*self._shared, folder))),
            readable=tuple(readable),
            mounts=self._home_of_set_up((folder, *readable, *own_folders())),
            hidden=(*hidden, *self._hidden()),
            quota=quota_of(self._spec.config),
        )
        return self._walled(wall, CHECKS)

    def around_workspace(self) -> Enclosure | None:
        if self._excused:
            return None
        return self._walled(replace(self._project_wall(), home_source=self.check_home), CHECKS)

    @contextmanager
    def hook(self, call: HookCall) -> Iterator[HookCall]:
        """Commit hooks run code of the project as well: inside, with copies of what they are about."""
        import shutil  # few projects have hooks

        if self._excused:
            yield call
            return
        if self._git is not None:
            self._git.prepare()
            self._git.add_tree(call.index)
        folder = self._folder / AGENT_GIT / HOOK_SESSIONS / plan_state(self._spec.ref, self._env).name
        remove_tree(folder)
        make_folder(folder, private=True)
        inside = HookCall(call.hook, folder / INDEX, folder / "message" if call.message else None)
        shutil.copyfile(call.index, inside.index)
        if call.message and inside.message:
            shutil.copyfile(call.message, inside.message)
        if not call.hook.is_relative_to(self._spec.repo.root):
            shutil.copytree(call.hook.parent, folder / call.hook.parent.name, symlinks=True)
            inside = replace(inside, hook=folder / call.hook.parent.name / call.hook.name)
        wall = self._walled(replace(self._project_wall(writable=[folder]), home_source=self.check_home), CHECKS)
        yield replace(inside, git_dir=self._git.git_dir if self._git else None, enclosure=wall)
        if call.message and inside.message and not inside.message.is_symlink():
            write_bytes(call.message, read_state(inside.message), durable=False)

    def _home_of_set_up(self, shown: Iterable[Path]) -> tuple[Mount, ...]:
        """What the set-up installed, read-only. Folders of the real home that are shown need a place in it."""
        own = home(self._env)
        if not self._backend.MOUNTS or not setup_of(self._spec, self._backend.NAME)[0]:
            return ()
        for path in shown:
            if path.is_dir() and path.is_relative_to(own) and path != own:
                make_folder(own_path(self.check_home, str(path.relative_to(own)), is_folder=True))
        return (Mount(self.check_home, own),)

    def may_excuse(self) -> bool:
        """Only before an agent has worked, on the user's own code, and only where no sandbox was asked for.

        What an agent has committed in an earlier run may fail inside on purpose: then it has to be known that a check
        could not run inside before.
        """
        if not self._may_excuse or self._excused:
            return False
        return (self._folder / CHECKS_OUTSIDE).is_file() or not _has_work_of_agents(self._spec.repo)

    def excuse(self, why: str) -> None:
        self._excused = True
        write_bytes(self._folder / CHECKS_OUTSIDE, f"{why}\n".encode(), mode=0o600)
        self.write(
            Noted(
                f"{OUTSIDE_NOTE}, because {why}; allow what they need (sandbox.allow_hosts, "
                "sandbox.files, agent.env), or use --sandbox to stop instead",
                warning=True,
            )
        )

    def shell_wall(self) -> Enclosure:
        """Everything as an agent sees it, without a login."""
        if self._git is not None:
            self._git.prepare()
        return self._walled(self._project_wall(), AGENTS)

    def _walled(self, wall: Wall, hosts: str = "") -> Walled:
        wall = replace(wall, image=self._spec.config.sandbox.image)
        if self._spec.config.sandbox.network == "open" and hosts:
            wall = replace(wall, is_network_open=True)
        elif self._network is not None and hosts:
            names = host_lists(self._spec.config, self._env)[hosts]
            wall = replace(wall, proxy=self._network.socket(hosts), hosts=names, forwards=self._network.forwards(hosts))
        return Walled(self._backend, self._program, wall)

    def _project_wall(self, readable: Iterable[Path] = (), writable: Iterable[Path] = ()) -> Wall:
        spec = self._spec
        root, git_folders = spec.repo.root, [self._git.folder] if self._git else []
        mounts = self._git.mounts(root, self._checkout) if self._git else ()
        read_only = [spec.ref.root / name for name in PROTECTED]
        if self._git is None:
            for name in ("hooks", "info") if (root / ".git").is_dir() else ():
                make_folder(root / ".git" / name)
            read_only += [root / name for name in _GIT_READ_ONLY]
            mounts = (Mount(root / ".git", root / ".git", is_writable=True),)  # it cannot be moved away
        commands = [check.command for check in all_checks(spec.config)]
        tools = readable_folders(self._env, self._env, commands)
        return Wall(
            home=home(self._env),
            home_source=self.home,
            writable=(
                *dict.fromkeys((*self._shared, root, spec.ref.root)),
                *git_folders,
                *map(Path, allowed_folders(spec.config, spec.ref.root, self._env)),
                *writable,
            ),
            readable=(*self._outside(tools), *readable, *([self._git.objects] if self._git else [])),
            read_only=tuple(path for path in read_only if path.exists()),
            mounts=mounts,
            hidden=self._hidden(),
            quota=quota_of(spec.config),
        )

    def _agent_wall(self, session: Session, agent: Agent, launch: Launch) -> Wall:
        hooks = session.hooks.state if session.hooks else None
        own = [session.folder] if session.folder.is_dir() else []
        writable = [*([hooks] if hooks else []), *own]
        readable = [*program_places(Path(launch.argv[0])), *(session.folder / name for name in launch.files)]
        readable += [path for word in session.command[1:] if (path := Path(word)).is_absolute() and path.is_file()]
        if (files := getattr(agent, "files", None)) is not None:
            readable += files(session)
        if hooks:
            readable += [hooks / POLICY, hooks / CLIENT_SETTINGS]
        return self._project_wall(self._outside(readable), writable)

    def _git_enclosure(self, git: AgentGit) -> Enclosure:
        wall = Wall(home=home(self._env), writable=(git.folder,), readable=(git.objects,), hidden=self._hidden())
        return self._walled(wall)

    def _outside(self, paths: Iterable[Path]) -> list[Path]:
        """Neither in the workspace nor around it, nor around the home folder: that would show it again."""
        closed = [self._spec.repo.root, *([self._checkout] if self._checkout else []), home(self._env)]
        return [path for path in paths if not any(root.is_relative_to(path) for root in closed)]

    def _hidden(self) -> tuple[Path, ...]:
        """The state folder may be outside the home folder."""
        return (outer_state_home(self._env),)

    def set_up(self) -> None:
        """`sandbox.setup`, or the project's script: once in each home folder, until it changes."""
        spec = self._spec
        command, key = setup_of(spec, self._backend.NAME)
        record = self._folder / SANDBOX_SETUP
        if not command or (record.is_file() and record.read_text() == key):
            return
        env = child_environment(self._env, spec.config.agent.env)
        if self._git is not None:
            self._git.prepare()
        for own in (self.home, self.check_home):
            wall = self._walled(replace(self._project_wall(), home_source=own), AGENTS)
            done = run(shell(command), cwd=spec.ref.root, env=env, timeout=spec.config.time_ceiling, enclosure=wall)
            if not done.ok:
                said = telling_line((done.out + done.err).decode("utf-8", "replace"))
                raise SetupError(
                    f"the sandbox's set-up failed: `{command}`: {said}",
                    hint="`ralph sandbox exec` tries a command there; hosts that it needs go in sandbox.allow_hosts",
                )
        write_bytes(record, key.encode(), mode=0o600)


def setup_of(spec: RunSpec, backend: str) -> tuple[str, str]:
    """The command that prepares the sandbox, empty if there is none, and what its result depends on."""
    script = spec.ref.root / SETUP_SCRIPT
    command = spec.config.sandbox.setup or (f"sh ./{SETUP_SCRIPT}" if script.is_file() else "")
    content = read_state(script) if command and not spec.config.sandbox.setup else b""
    return command, hashlib.sha256(b"\0".join((backend.encode(), command.encode(), content))).hexdigest()


def quota_of(config: Config) -> Quota:
    limits = config.sandbox.limits
    memory = limits.memory_mb
    if memory == 0:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4 // 1_000_000
    return Quota(
        processes=limits.processes, memory_mb=max(memory, 0), disk_mb=limits.disk_mb, cpu_seconds=limits.cpu_seconds
    )


def choose_sandbox(settings: Settings, env: Mapping[str, str], tell: Callable[[str], None]) -> Chosen:
    """The sandbox of a run. Says once if there is none although one was wanted. Raises SetupError if it is required."""
    config = settings.config
    unknown = has_unknown_hosts(config)
    if config.sandbox.use == "auto" and unknown:
        tell(
            f"no sandbox: which hosts the agent `{unknown}` needs is not known; list them in sandbox.allow_hosts, "
            "or use --no-sandbox to say that it runs without one"
        )
        return Chosen()
    chosen = choose(config.sandbox.use, env, image=config.sandbox.image)
    if chosen.why_not:
        hint = f" ({chosen.hint})" if chosen.hint else ""
        tell(f"no sandbox: {chosen.why_not}{hint}; the guard and the checks are what is left")
    if chosen.backend is not None and config.sandbox.network == "open":
        tell("THE NETWORK IS OPEN: agents and checks can reach and send data to every host (sandbox.network: open)")
    return chosen


def inside(settings: Settings, chosen: Chosen) -> Settings:
    """The settings behind a wall: no questions, and few variables, unless the user has set these."""
    if chosen.backend is None:
        return settings
    chosen_by_user = {key for key in ("permissions", "env") if settings.origin(key).kind not in _UNSET}
    changes = {"permissions": "skip", "env": "minimal"}
    changes = {key: value for key, value in changes.items() if key not in chosen_by_user}
    return replace(settings, config=replace(settings.config, **changes))


def sandbox_line(settings: Settings, chosen: Chosen) -> str:
    """One phrase for people: what it is, and what can be reached from inside."""
    if chosen.backend is None:
        return ""
    network = settings.config.sandbox.network
    if network == "open":
        return f"{chosen.title}, NETWORK OPEN"
    return f"{chosen.title}, network: {'none' if network == 'none' else 'listed hosts'}"


@contextmanager
def confined(
    spec: RunSpec, chosen: Chosen, clone: Clone | None, env: Mapping[str, str], tell: Callable[[str], None]
) -> Iterator[Confinement | None]:
    """The sandbox while a run lasts, with its proxy."""
    if chosen.backend is None:
        yield None
        return
    from ralph.sandbox.network import Network  # much to import

    with ExitStack() as stack:
        network = None
        if spec.config.sandbox.network == "listed":
            log = journal_path(workspace_state(spec.ref.root, env), spec.run).with_name(NETWORK_LOG)
            make_folder(log.parent, private=True)
            lists = host_lists(spec.config, env)
            network = stack.enter_context(
                Network(log.parent, log, lists, env, allow_hosts=spec.config.sandbox.allow_hosts)
            )
        _refuse_filters_in_tree(spec.repo)
        is_asked_for = spec.settings.origin("sandbox.use").kind not in _UNSET and spec.config.sandbox.use != "auto"
        is_own_code = clone is None or clone.base == line(git(spec.repo, "rev-parse", "HEAD"))
        may_excuse = is_own_code and not is_asked_for
        checkout = Path(clone.checkout) if clone else None
        confinement = Confinement(chosen, spec, env, network, checkout, may_excuse=may_excuse)
        confinement.open(tell)
        yield confinement


def _has_work_of_agents(repo: Repo) -> bool:
    return bool(ask(repo, "log", "--max-count=1", "--format=%H", "--grep=^Ralph-Run: ", "HEAD").out)


def _refuse_filters_in_tree(repo: Repo) -> None:
    """git runs a filter whenever the loop looks at the work: a script of the tree would be the agent's, outside."""
    listed = ask(repo, "config", "--null", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$").out
    for item in filter(None, listed.decode("utf-8", "surrogateescape").split("\0")):
        key, _, command = item.partition("\n")
        words = (word.strip("'\"") for word in command.split())
        named = [word for word in words if word and (repo.root / word).is_file()]
        inner = [word for word in named if (repo.root / word).absolute().is_relative_to(repo.root)]
        if inner:
            raise SetupError(
                f"git's {key} runs {one_line(inner[0], 80)}, a file that the agent can change: outside the sandbox",
                hint="let it run a file outside the repository, or use --no-sandbox",
            )


def used_agents(config: Config) -> list[str]:
    """The agents that a run may start."""
    return list(named_agents(config))


def host_lists(config: Config, env: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The hosts for agents, and for checks. Raises SetupError if an agent's are not known."""
    own = [*config.sandbox.allow_hosts]
    theirs: list[str] = []
    for name in used_agents(config):
        known = getattr(find_agent(name), "hosts", None)
        theirs += known(env) if known else ()
    return {AGENTS: tuple(dict.fromkeys([*theirs, *own])), CHECKS: tuple(own)}


def has_unknown_hosts(config: Config) -> str:
    """The name of an agent whose hosts nobody has told; empty if all are known."""
    if config.sandbox.allow_hosts or config.sandbox.network != "listed":
        return ""
    return next((name for name in used_agents(config) if not hasattr(find_agent(name), "hosts")), "")


def _copy_file(source: Path, target: Path) -> None:
    if not source.is_file():
        raise SetupError(f"sandbox.files: {source} does not exist", hint="correct the list")
    make_folder(target.parent, private=True)
    write_bytes(target, read_state(source), mode=0o600, durable=False)
