"""Long lists of names, written as text for readability."""


def one_of(text: str) -> frozenset[str]:
    return frozenset(text.split())
