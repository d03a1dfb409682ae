"""Patterns that are compiled at their first use behave like compiled ones, and every one in Ralph can be compiled."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import re
import subprocess
import sys

from ralph.core.lazy_pattern import _LazyPattern, lazy_pattern

USERS = ("ralph.core.text", "ralph.importing.wording", "ralph.plans.prose", "ralph.run.launch")


def test_it_has_the_methods_of_a_pattern() -> None:
    pattern = lazy_pattern(r"(?P<word>\w+)!", re.IGNORECASE)
    assert [found["word"] for found in pattern.finditer("oh! no!")] == ["oh", "no"]
    assert pattern.sub("?", "oh!") == "?"
    assert pattern.flags & re.IGNORECASE
    assert pattern.pattern == r"(?P<word>\w+)!"
    assert lazy_pattern(rb"a+").fullmatch(b"aa") is not None


def test_it_can_be_copied_and_pickled() -> None:
    pattern = lazy_pattern("a+")
    assert pattern.fullmatch("aa")
    for other in (copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
        assert other.fullmatch("aa")


def test_all_of_them_compile() -> None:
    for name in USERS:
        importlib.import_module(name)
    patterns = [each for each in gc.get_objects() if isinstance(each, _LazyPattern)]
    assert len(patterns) > 150
    for each in patterns:
        assert each.pattern == each._arguments[0]


def test_starting_a_run_compiles_few_patterns() -> None:
    """It used to compile 382."""
    code = """
import re._compiler
count, compile = 0, re._compiler.compile
def counted(*arguments):
    global count
    count += 1
    return compile(*arguments)
re._compiler.compile = counted
import ralph.run.launch
print(count)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 220
