"""A small text kit. It grows by one function a story."""


def shout(text: str) -> str:
    """`hello` → `HELLO!`"""
    return text.upper() + "!"
