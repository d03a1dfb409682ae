"""The project's own rules: commands allowed although the guard would deny them, and the other way round."""

from ralph.hooks.guard.globs import matches


class Rule:
    __slots__ = ("args", "category", "program", "reason")

    def __init__(self, program: str, args: str, category: str, reason: str) -> None:
        self.program = program
        self.args = args
        self.category = category
        self.reason = reason

    def fits(self, argv: list[str]) -> bool:
        if not argv:
            return self.program == "*" and self.args == "*"
        name = argv[0].rpartition("/")[2]
        is_program = matches(self.program, name) or matches(self.program, argv[0])
        return is_program and matches(self.args, " ".join(argv[1:]))


class Rules:
    """From the section `guard` of the compiled policy. Entries of an unexpected type are skipped."""

    def __init__(self, section: dict[str, object]) -> None:
        self.allow = _rules(section.get("allow"))
        self.deny = _rules(section.get("deny"))
        if section.get("push") is True:
            self.allow.append(Rule("git", "*push*", "git-push", ""))

    def allows(self, category: str, argv: list[str]) -> bool:
        return any(rule.category in ("", category) and rule.fits(argv) for rule in self.allow)

    def denies(self, argv: list[str]) -> Rule | None:
        return next((rule for rule in self.deny if rule.fits(argv)), None)


def _rules(value: object) -> list[Rule]:
    found: list[Rule] = []
    for item in value if isinstance(value, (list, tuple)) else ():
        if isinstance(item, str) and item.strip():
            program, _, args = item.strip().partition(" ")
            found.append(Rule(program, args.strip() or "*", "", ""))
        elif isinstance(item, dict):
            program, args = _text(item, "program", "*"), _text(item, "args", "*")
            category, reason = _text(item, "category", ""), _text(item, "reason", "")
            if "program" in item or category:
                found.append(Rule(program, args, category, reason))
    return found


def _text(item: dict[object, object], name: str, otherwise: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else otherwise
