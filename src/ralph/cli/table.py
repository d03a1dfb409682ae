"""The commands: name → where it lives and one line about it. Nothing is imported until it is called."""


class Entry:
    """A plain class: NamedTuple and dataclass would cost more than the rest of `ralph --version`."""

    __slots__ = ("module", "summary")

    def __init__(self, module: str, summary: str) -> None:
        self.module = module
        self.summary = summary


GROUPS: dict[str, dict[str, Entry]] = {
    "The loop": {
        "run": Entry("ralph.cli.run", "work through the plan until it is done, or say why it stopped"),
        "build": Entry("ralph.cli.build", "run for one PRD, with the arguments of `.ralph/PRD-N/` loops"),
        "prompt": Entry("ralph.cli.prompt", "print what an agent would be told"),
        "route": Entry("ralph.cli.route", "explain which model would work on a story, and who would step in"),
        "answer": Entry("ralph.cli.answer", "answer an agent's question"),
        "pause": Entry("ralph.cli.pause", "pause a run, between iterations"),
        "resume": Entry("ralph.cli.resume", "let a paused run go on"),
        "stop": Entry("ralph.cli.stop", "stop a run when its iteration is over, or now"),
        "note": Entry("ralph.cli.note", "tell the next agent something"),
        "verify": Entry("ralph.cli.verify", "run the checks by hand"),
        "proof": Entry("ralph.cli.proof", "show why a story counts as done"),
        "audit": Entry("ralph.cli.audit", "derive every `done` anew, and say what still holds"),
        "log": Entry("ralph.cli.log", "show what happened in a run"),
        "explain": Entry("ralph.cli.explain", "tell why a run ended, and what to do"),
        "runs": Entry("ralph.cli.runs", "list the runs of this workspace"),
        "cost": Entry("ralph.cli.cost", "show what runs have cost, and what it may take to finish"),
        "stats": Entry("ralph.cli.stats", "show attempts, verdicts and reviews in figures"),
        "circuit": Entry("ralph.cli.circuit", "show the circuit breakers of a run, and why one has tripped"),
        "replay": Entry("ralph.cli.replay", "decide and judge a recorded run again"),
        "rescue": Entry("ralph.cli.rescue", "list, show, restore or drop work that was not accepted"),
    },
    "Plans": {
        "init": Entry("ralph.cli.init", "start a plan in any of the five layouts"),
        "plan": Entry("ralph.cli.plan", "make a plan with an agent, from an idea or from requirements"),
        "add": Entry("ralph.cli.add", "add work to a plan, in your words"),
        "fix": Entry("ralph.cli.fix", "turn a bug report into a story with a check that fails now"),
        "status": Entry("ralph.cli.status", "show the stories, their states and the last run"),
        "task": Entry("ralph.cli.task", "list, show, add and change stories"),
        "check": Entry("ralph.cli.check", "lint a plan before any money is spent"),
        "verify-sync": Entry("ralph.cli.verify_sync", "compare a spec with its beads"),
        "import": Entry("ralph.cli.import_plan", "make stories of issues, checklists, beads and plans of other tools"),
        "export": Entry("ralph.cli.export", "write the plan in another layout, and say what is lost"),
        "convert": Entry("ralph.cli.convert", "put the plan into another layout; the old one goes into the archive"),
        "archive": Entry("ralph.cli.archive", "put a finished plan away, list archives, bring one back"),
    },
    "Memory": {
        "learn": Entry("ralph.cli.learn", "keep something that later sessions should know"),
        "learnings": Entry("ralph.cli.learnings", "list what earlier sessions and people have learned"),
        "compact": Entry("ralph.cli.compact", "have an agent summarise what was learned, and keep the original"),
        "budget": Entry("ralph.cli.budget", "show what every session begins with, in tokens, and what to cut"),
    },
    "Set-up": {
        "config": Entry("ralph.cli.config", "show, read and change settings, with their origin"),
        "trust": Entry("ralph.cli.trust", "allow the commands that a workspace names"),
        "notify": Entry("ralph.cli.notify", "try the notifications"),
        "hooks": Entry("ralph.cli.hooks", "Ralph's hooks in a Claude Code client"),
        "plugin": Entry("ralph.cli.plugin", "write a Claude Code plugin with Ralph's hooks, skills and commands"),
        "guard": Entry("ralph.cli.guard", "say whether a command would be allowed, and why"),
        "preflight": Entry("ralph.cli.preflight", "look at everything a run needs, without starting one"),
        "doctor": Entry("ralph.cli.doctor", "check this machine and say what to fix"),
        "paths": Entry("ralph.cli.paths", "print every location Ralph uses"),
        "detect": Entry("ralph.cli.detect", "recognise test results and usage limits in text"),
        "completion": Entry("ralph.cli.completion", "print a completion script for bash, zsh or fish"),
    },
}


def entries() -> dict[str, Entry]:
    return {name: entry for group in GROUPS.values() for name, entry in group.items()}
