"""Shell patterns without `re`, whose import takes longer than judging a command; and brace expansion."""


def one_of(text: str) -> frozenset[str]:
    """A set of words, packed in one text."""
    return frozenset(text.split())


def wordlist(text: str) -> tuple[str, ...]:
    """The same in their order, for prefixes, endings and lists."""
    return tuple(text.split())


_MOST = 64
_MOST_BRACES = 40


def matches(pattern: str, text: str) -> bool:
    """`*`, `?` and `[…]`, as in a shell and in find; a slash is not special."""
    if "*" not in pattern and "?" not in pattern and "[" not in pattern:
        return pattern == text
    return _match(pattern, 0, text, 0)


def _match(pattern: str, p: int, text: str, t: int) -> bool:
    star, resume = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, resume = p, t
            p += 1
            continue
        stop = _one(pattern, p, text[t]) if p < len(pattern) else 0
        if stop:
            p, t = stop, t + 1
        elif star >= 0:
            p, resume = star + 1, resume + 1
            t = resume
        else:
            return False
    while p < len(pattern) and pattern[p] == "*":
        p += 1
    return p == len(pattern)


def _one(pattern: str, p: int, letter: str) -> int:
    """Where the pattern continues if its next element matches the letter; 0: it does not."""
    if pattern[p] == "?":
        return p + 1
    if pattern[p] == "[" and (stop := pattern.find("]", p + 2)) > 0:
        inside = pattern[p + 1 : stop]
        negated = inside[0] in "!^"
        return stop + 1 if _in_set(inside[1:] if negated else inside, letter) != negated else 0
    return p + 1 if pattern[p] == letter else 0


def _in_set(inside: str, letter: str) -> bool:
    i = 0
    while i < len(inside):
        if i + 2 < len(inside) and inside[i + 1] == "-":
            if inside[i] <= letter <= inside[i + 2]:
                return True
            i += 3
        else:
            if inside[i] == letter:
                return True
            i += 1
    return False


def has_glob(text: str) -> bool:
    return "*" in text or "?" in text or "[" in text


def takes_everything(pattern: str) -> bool:
    """A file name pattern that excludes nothing, or almost nothing: `*`, `.*`, `?*`, `[!.]*`."""
    if "*" not in pattern:
        return False
    rest = pattern.replace("*", "").replace("?", "").lstrip(".")
    while rest.startswith(("[!", "[^")) and "]" in rest:
        rest = rest[rest.index("]") + 1 :]
    return rest in ("", "[a-zA-Z0-9]", "[a-z]", "[A-Za-z]")


def braces(text: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`, `{1..3}` is three words. Long lists are cut off: the first ones are enough."""
    if "{" not in text or text.count("{") > _MOST_BRACES:
        return [text]
    start = text.find("{")
    while start >= 0:
        if (stop := _closing(text, start)) > 0:
            choices = _choices(text[start + 1 : stop])
            if choices:
                tails = braces(text[stop + 1 :])
                heads = [text[:start] + each for choice in choices for each in braces(choice)]
                return [head + tail for head in heads for tail in tails][:_MOST]
        start = text.find("{", start + 1)
    return [text]


def _closing(text: str, start: int) -> int:
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    return -1


def _choices(inside: str) -> list[str]:
    choices, depth, last = [], 0, 0
    for i, letter in enumerate(inside):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            choices.append(inside[last:i])
            last = i + 1
    if choices:
        return [*choices, inside[last:]]
    return _sequence(inside.split(".."))


def _sequence(ends: list[str]) -> list[str]:
    if len(ends) not in (2, 3):
        return []
    first, last = ends[0], ends[1]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = int(first), int(last)
        step = 1 if low <= high else -1
        return [str(number) for number in range(low, high + step, step)][:_MOST] if abs(high - low) < 10**6 else [first]
    if len(first) == len(last) == 1:
        low, high = ord(first), ord(last)
        step = 1 if low <= high else -1
        return [chr(number) for number in range(low, high + step, step)][:_MOST]
    return []


def pairs(text: str) -> dict[str, str]:
    """`a=b c=d` as a dict."""
    return {key: value for key, _, value in (item.partition("=") for item in text.split())}
