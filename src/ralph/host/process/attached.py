"""A long-lived process of Ralph's own beside a run. It ends when its stdin closes, so also when the run is killed.

Unlike an agent it is not tied to the thread that starts it, and it is in our session, so that it is not taken for
something that an agent left behind (see `tree`).
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from ralph.core.errors import SetupError

_MOST_FILES = 65536


class AttachedProcess:
    """Starts a process, sends it one line, and waits until it answers `ready`. Raises SetupError if it does not."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        label: str,
        line: bytes,
        env: Mapping[str, str],
        descriptors: Sequence[int] = (),
        patience: float = 30.0,
    ) -> None:
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                pass_fds=tuple(descriptors),
                process_group=0,  # out of reach of Ctrl-C
            )
        except OSError as error:
            raise SetupError(f"could not start {argv[0]}: {error.strerror}") from None
        _allow_many_files(self._process.pid)
        output = self._greet(line, patience)
        if not output.endswith(b"ready\n"):
            self.end(grace=0)
            last = output.decode(errors="replace").strip().splitlines()[-1:] or ["it gave no answer"]
            raise SetupError(f"{label} did not start: {last[0][:200]}")

    def _greet(self, line: bytes, patience: float) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(line + b"\n")
        output = b""
        until = time.monotonic() + patience
        with self._process.stdout as answers:
            while not output.endswith(b"ready\n") and (left := until - time.monotonic()) > 0:
                if not select.select([answers], [], [], left)[0]:
                    break
                data = os.read(answers.fileno(), 4096)
                if not data:
                    break
                output += data
        return output

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it has ended, for whatever reason."""
        self._process.wait()

    def end(self, *, grace: float = 2.0) -> None:
        with self._lock:
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            try:
                self._process.wait(timeout=grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _allow_many_files(pid: int) -> None:
    if sys.platform != "linux":
        return
    import resource

    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(soft, most), hard))
