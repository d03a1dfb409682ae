"""Long lists of names as text, which is how they are read."""


def one_of(text: str) -> frozenset[str]:
    return frozenset(text.split())
