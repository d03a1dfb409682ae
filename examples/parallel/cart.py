"""What a customer is about to buy: pairs of a name and a price in cents."""


def total(items: list[tuple[str, int]]) -> int:
    """In cents, without taxes."""
    return sum(cents for _, cents in items)
