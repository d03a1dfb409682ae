"""Whether a run is at work, by its process."""

from __future__ import annotations

import platform
import subprocess
import time

from ralph.core.events import RunStarted
from ralph.host.process.tree import identify
from ralph.journal.ledger import Reserve
from ralph.state.locks import is_alive
from ralph.workspace import killed_sessions as unsettled
from support.processes import wait_for


def test_a_run_that_has_died_is_dead_even_if_nobody_has_collected_it() -> None:
    """In a container there may be nobody who does; its money would be set aside for ever."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        found = identify(process.pid)
        assert found is not None
        begun = RunStarted(
            run="r", workspace="w", layout="l", plan="p", pid=found.pid, start=found.start, host=platform.node()
        )
        held = Reserve(
            id="r/1/1", t=0, run="r", plan="p", story="", pid=found.pid, start=found.start, host=platform.node()
        )
        assert is_alive(begun)
        assert unsettled.is_alive(held, time.time())
        process.kill()
        wait_for(lambda: not is_alive(begun))
        assert not unsettled.is_alive(held, time.time())
    finally:
        process.kill()
        process.wait()
