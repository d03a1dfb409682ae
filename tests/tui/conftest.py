"""One run for all tests that only look at it."""

from __future__ import annotations

import pytest

from support.loops import LoopProject
from support.ui_runs import showcase


@pytest.fixture(scope="session")
def ended(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    return showcase(tmp_path_factory.mktemp("showcase") / "made")
