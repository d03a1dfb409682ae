"""What the guard denies. `docs/guard.md` has the same table; a test compares them."""

from ralph.guard.tables import load


class Category:
    def __init__(self, id: str, text: str) -> None:
        self.id = id
        self.severity, _, rest = text.partition(" ")
        self.meaning, self.advice = rest.strip().split("\n")


SEVERITIES = ("critical", "high", "medium")
TABLE = [Category(id, text) for id, text in load("categories").items()]
BY_ID = {category.id: category for category in TABLE}
