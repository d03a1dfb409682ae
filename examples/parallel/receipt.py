"""What is printed at the counter."""

import cart
import price


def receipt(items: list[tuple[str, int]]) -> str:
    lines = [f"{name}: {price.price(cents)}" for name, cents in items]
    return "\n".join([*lines, f"to pay: {price.price(cart.total(items))}"])
