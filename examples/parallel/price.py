"""How the shop writes prices."""


def price(cents: int) -> str:
    """1250 → `12.50`"""
    return f"{cents / 100:.2f}"
