"""What an agent's client can do, what it needs, and how it is pointed at a model of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.ports import Agent, Login


class AgentTraits(Struct, frozen=True, kw_only=True):
    """How a client differs from the others. The defaults are those of an adapter that says nothing."""

    program: str = ""
    """The name of its program. Empty: it has none of its own."""
    install: str = ""
    """The command that installs it."""
    tried: str = ""
    """The version that passed the conformance suite."""
    log_in: str = ""
    """How its user logs in: a command, or a variable to set."""
    keys: tuple[str, ...] = ()
    """Variables that hold a login."""
    reports_usage: bool = True
    """Its output has the number of tokens."""
    reports_cost: bool = False
    """Its output has the cost in dollars; otherwise the cost is estimated from list prices."""
    unguarded: str = ""
    """What Ralph's hooks do not see, as the end of a sentence: "edits of files". Only of a client that has hooks."""
    own_rules: str = ""
    """What `permissions: client` comes to, where that is less than a story needs, as a clause: "it changes nothing"."""
    cannot: dict[str, str] = {}
    """Scenario of the conformance suite → why the client cannot do it: a footnote in the table."""
    notes: tuple[str, ...] = ()
    """Sentences for `ralph agents show` and docs/agents.md."""


class LoginState(Struct, frozen=True):
    """Whether a client seems to be logged in, judged without the network."""

    by: str = ""
    """The variable or file. Empty: none was found."""
    is_known: bool = True
    """False: the adapter does not know where its client keeps a login."""


class Rehearsal(Struct, frozen=True, kw_only=True):
    """What a user would have to set for the client to work with a model at another address."""

    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """In the home folder."""
    model: str = ""
    """The value of `agent.model`. Empty: the client's own choice works."""


def traits_of(agent: Agent) -> AgentTraits:
    found = getattr(agent, "TRAITS", None)
    return found if isinstance(found, AgentTraits) else AgentTraits()


def login_of(agent: Agent, env: Mapping[str, str], home: Path) -> LoginState:
    own = getattr(agent, "login", None)
    if own is not None:
        found: LoginState = own(env, home)
        return found
    keys = traits_of(agent).keys
    files: tuple[Login, ...] = getattr(agent, "LOGIN", ())
    if not keys and not files:
        return LoginState(is_known=False)
    if key := next((key for key in keys if env.get(key)), ""):
        return LoginState(key)
    places = [file.original(home, env) for file in files]
    return LoginState(next((str(place) for place in places if place.is_file()), ""))
