"""Inside a sandbox: makes the terminal on stdin the command's own, so that Ctrl-C, Ctrl-Z and job control work there.

    python3 terminal_entry.py CMD…

A sandbox starts its command in a new session, which has no terminal. This imports nothing of Ralph.
"""

import os
import sys


def main(argv: list[str]) -> None:
    import fcntl
    import termios

    if os.getpid() != os.getsid(0):
        os.setsid()
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    except OSError as error:
        sys.stderr.write(f"no job control: {error.strerror}\n")
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"ralph: could not start {argv[0]} in the sandbox: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
