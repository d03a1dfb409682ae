"""Parse arguments: flags, values, and the remaining words."""


class Options:
    """Short flags are kept individually (`-rf` is `-r` and `-f`); long ones may be abbreviated, as in GNU tools and
    git."""

    def __init__(
        self, args: list[str], valued: str = "", valued_long: "tuple[str, ...]" = (), stops: bool = False
    ) -> None:
        self.flags: set[str] = set()
        self.values: list[tuple[str, str]] = []
        self.rest: list[str] = []
        self.after: list[str] = []
        """The words after `--`."""
        i = 0
        while i < len(args):
            arg = args[i]
            i += 1
            if arg == "--":
                self.after = args[i:]
                self.rest += args[i:]
                break
            if arg.startswith("--"):
                name, equals, value = arg.partition("=")
                self.flags.add(name)
                if equals:
                    self.values.append((name, value))
                elif name in valued_long and i < len(args):
                    self.values.append((name, args[i]))
                    i += 1
            elif arg.startswith("-") and len(arg) > 1:
                i = self._short(arg, args, i, valued, valued_long)
            else:
                self.rest.append(arg)
                if stops:
                    self.rest += args[i:]
                    break

    def _short(self, arg: str, args: list[str], i: int, valued: str, valued_long: "tuple[str, ...]") -> int:
        if arg in valued_long:  # `-name`, as find and openssl have them
            self.flags.add(arg)
            if i < len(args):
                self.values.append((arg, args[i]))
            return i + 1
        for at, letter in enumerate(arg[1:], 1):
            flag = "-" + letter
            self.flags.add(flag)
            if letter in valued:
                if arg[at + 1 :]:
                    self.values.append((flag, arg[at + 1 :]))
                elif i < len(args):
                    self.values.append((flag, args[i]))
                    i += 1
                break
        return i

    def has(self, *names: str) -> bool:
        """Whether one of them is present. Four letters of a long name are enough."""
        for name in names:
            if name in self.flags:
                return True
            if name.startswith("--") and any(len(flag) > 4 and name.startswith(flag) for flag in self.flags):
                return True
        return False

    def value(self, *names: str) -> str | None:
        found = [value for name, value in self.values if name in names]
        return found[-1] if found else None

    def all(self, *names: str) -> list[str]:
        return [value for name, value in self.values if name in names]
