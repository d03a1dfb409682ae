"""Which files are protected: by a file, a folder or a glob such as `tests/**`, `*.lock`, `conftest.py`, `./Makefile`.

The hook that denies an edit early and the loop that restores files late call the same function.
"""

Texts = list[str] | tuple[str, ...]


def is_protected(path: str, patterns: Texts, roots: Texts, own: Texts = ()) -> bool:
    """All paths are absolute and real. Patterns are relative to any of `roots`: the workspace and the repository.

    `own` are files, and folders with a `/` at the end, that an agent leaves for the loop, such as claims.
    """
    if any(path == one or (one[-1:] == "/" and path.startswith(one)) for one in own):
        return False
    tops = [root.rstrip("/") + "/" for root in roots]
    names = {path[len(top) :] for top in tops if path.startswith(top)}
    return any(matches(name, pattern) for pattern in patterns for name in names)


def matches(path: str, pattern: str) -> bool:
    """A `*` also matches slashes, a folder stands for all its content, a name without a slash matches anywhere.

    Case does not count, because it does not on some file systems.
    """
    path, pattern = path.lower(), pattern.lower()
    is_anywhere = "/" not in pattern.rstrip("/")
    pattern = pattern.removeprefix("./").strip("/")
    if not pattern:
        return False
    if path == pattern or path.startswith(pattern + "/") or (is_anywhere and f"/{pattern}/" in f"/{path}/"):
        return True
    if not any(sign in pattern for sign in "*?["):
        return False
    from fnmatch import fnmatchcase  # brings `re` along, which takes longer than a whole hook

    spellings = (pattern, pattern.replace("**/", ""), *((f"*/{pattern}",) if is_anywhere else ()))
    return any(fnmatchcase(path, spelling + below) for spelling in spellings for below in ("", "/*"))
