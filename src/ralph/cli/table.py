"""The commands: name → its module and a one-line summary. Nothing is imported until a command is called."""


class Entry:
    """A plain class: importing NamedTuple or dataclass would cost more than the rest of `ralph --version`."""

    __slots__ = ("module", "summary")

    def __init__(self, module: str, summary: str) -> None:
        self.module = module
        self.summary = summary


DAILY = ("init", "plan", "check", "run", "watch", "status", "stop", "answer", "report", "retry")
"""The commands that a bare `ralph` lists, in order of use. `ralph help --all` lists the others."""

GROUPS: dict[str, dict[str, Entry]] = {
    "Plan the work": {
        "init": Entry("ralph.cli.init", "set up Ralph in a project and start a plan"),
        "plan": Entry("ralph.cli.plan", "plan with an agent, from an idea or from requirements"),
        "add": Entry("ralph.cli.add", "turn a request into new stories, with an agent"),
        "fix": Entry("ralph.cli.fix", "turn a bug report into a story with a failing check"),
        "task": Entry("ralph.cli.task", "list, show, add and edit stories"),
        "import": Entry("ralph.cli.import_plan", "import issues, checklists, beads or another tool's plan"),
        "check": Entry("ralph.cli.check", "check that the plan is ready to run"),
    },
    "Run": {
        "run": Entry("ralph.cli.run", "work through the plan until every story is done"),
        "watch": Entry("ralph.cli.watch", "show a run live, from any terminal"),
        "build": Entry("ralph.cli.build", "run one numbered PRD: `ralph build 10 --prd 1`"),
        "pause": Entry("ralph.cli.pause", "pause a run after the current iteration"),
        "resume": Entry("ralph.cli.resume", "resume a paused run"),
        "stop": Entry("ralph.cli.stop", "stop a run after the current iteration, or now"),
        "retry": Entry("ralph.cli.retry", "give failed stories another chance"),
        "answer": Entry("ralph.cli.answer", "list open questions, or answer one"),
        "note": Entry("ralph.cli.note", "leave a note for the next session"),
    },
    "See what happened": {
        "status": Entry("ralph.cli.status", "show the stories, their states and the last run"),
        "report": Entry("ralph.cli.report", "show what a run did: stories, commits, cost, questions"),
        "log": Entry("ralph.cli.log", "show the events of a run"),
        "explain": Entry("ralph.cli.explain", "explain why a run ended and what to do next"),
        "runs": Entry("ralph.cli.runs", "list the runs of this workspace"),
        "cost": Entry("ralph.cli.cost", "show what runs cost, and a forecast for the rest"),
        "stats": Entry("ralph.cli.stats", "show statistics: attempts, verdicts, reviews"),
        "circuit": Entry("ralph.cli.circuit", "show the circuit breakers of a run"),
    },
    "Verify": {
        "verify": Entry("ralph.cli.verify", "run the checks now"),
        "proof": Entry("ralph.cli.proof", "show why a story counts as done"),
        "exam": Entry("ralph.cli.exam", "have a session write end-to-end tests for a finished plan"),
        "audit": Entry("ralph.cli.audit", "re-verify every finished story against its proof"),
        "rescue": Entry("ralph.cli.rescue", "list, show, restore or drop rejected work"),
        "replay": Entry("ralph.cli.replay", "replay the decisions of a recorded run"),
        "verify-sync": Entry("ralph.cli.verify_sync", "compare a spec with its beads"),
    },
    "Plan files": {
        "export": Entry("ralph.cli.export", "write the plan in another layout"),
        "convert": Entry("ralph.cli.convert", "convert the plan to another layout"),
        "archive": Entry("ralph.cli.archive", "archive a plan, list archives, restore one"),
    },
    "Prompts and memory": {
        "prompt": Entry("ralph.cli.prompt", "print the prompt of the next session"),
        "route": Entry("ralph.cli.route", "show which agent and model would get a story"),
        "budget": Entry("ralph.cli.budget", "show how many tokens every session starts with"),
        "learn": Entry("ralph.cli.learn", "record something for later sessions"),
        "learnings": Entry("ralph.cli.learnings", "list what was learned so far"),
        "compact": Entry("ralph.cli.compact", "summarise the learnings with an agent"),
    },
    "Setup": {
        "config": Entry("ralph.cli.config", "show and change settings"),
        "trust": Entry("ralph.cli.trust", "review and trust the commands of a workspace"),
        "doctor": Entry("ralph.cli.doctor", "check this machine"),
        "preflight": Entry("ralph.cli.preflight", "check everything a run needs, without starting one"),
        "notify": Entry("ralph.cli.notify", "test the notifications"),
        "hooks": Entry("ralph.cli.hooks", "install and inspect the Claude Code hooks"),
        "plugin": Entry("ralph.cli.plugin", "write a Claude Code plugin"),
        "guard": Entry("ralph.cli.guard", "show whether the agent may run a command"),
        "detect": Entry("ralph.cli.detect", "detect test results and usage limits in text"),
        "paths": Entry("ralph.cli.paths", "print the files and folders Ralph uses"),
        "help": Entry("ralph.cli.help", "list the commands, or explain one"),
        "completion": Entry("ralph.cli.completion", "print a completion script for bash, zsh or fish"),
    },
}


def entries() -> dict[str, Entry]:
    return {name: entry for group in GROUPS.values() for name, entry in group.items()}
