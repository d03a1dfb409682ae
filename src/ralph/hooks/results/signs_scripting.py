"""Result signs of Python, Ruby, PHP, Perl, Elixir, Lua, R and shell frameworks. `signs` explains the format."""

_COUNT = r"\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|warnings?|deselected|reruns?|rerun|subtests passed)"

_COUNTS = rf"[= ]*{_COUNT}(?:, {_COUNT})*"
_SECONDS = r"[\d.]+ ?s(?:econds)?(?: \([\d:, day]+\))?"

PYTEST = (
    (
        "sum",
        " in ",
        rf"^(?=.*(?:passed|failed|error|skipped)){_COUNTS} in {_SECONDS}[= ]*$",
        r"\b[1-9]\d* (?:failed|errors?)\b",
    ),
    ("sum", "Results (", r"^Results \([\d.]+s\):\n(?:\s*\d+ \w+.*\n?|\s+- .*\n?)+", r"\b[1-9]\d* (?:failed|errors?)\b"),
    ("fail", "FAIL Required test coverage", r"^(?:FAIL|ERROR:?) Required test coverage of .* not reached"),
    ("fail", "overage failure: total of", r"^(?:ERROR: )?Coverage failure: total of .* is less than fail[-_]under"),
    ("fail", "INTERNALERROR>", r"^INTERNALERROR> "),
    ("fail", "ImportError while loading conftest", r"^ImportError while loading conftest"),
    ("fail", "Fatal Python error", r"^Fatal Python error: "),
    (
        "fail",
        "Interrupted: ",
        r"^!+ (?:Interrupted: \d+ error|stopping after \d+ failures?|xdist\.dsession\.Interrupted)",
    ),
    ("mark", "FAILURES =", r"^=+ (?:FAILURES|ERRORS) =+$"),
    ("mark", "ERRORS =", r"^=+ (?:FAILURES|ERRORS) =+$"),
    ("mark", "FAILED ", r"^FAILED \S+(?:::|\.py)"),
    ("mark", "ERROR ", r"^ERROR \S+(?:::\S+|\.py)(?: - |$)"),
    ("mark", "ERROR collecting", r"^_+ ERROR collecting "),
    ("mark", "ERROR at ", r"^_+ ERROR at (?:setup|teardown) of "),
    (
        "mark",
        "::",
        r"^(?:\[gw\d+\] )?(?:\[ *\d+%\] )?(?:FAILED|ERROR) \S+::|^\S+::.* (?:FAILED|ERROR)(?: +\[ *\d+%\])?$",
    ),
    ("mark", "E   ", r"^E   +\S"),
    ("mark", "%]", r"^\S+\.py [.sxXpPREF]*[FE][.sxXpPREF]* *(?:\[ *\d+%\])?$|^[.sxXREF]*[FE][.sxXREF]* +\[ *\d+%\]$"),
    ("mark", "+ Timeout +", r"^\++ Timeout \++$"),
    ("mark", "stepwise", r"^.*Interrupted: Test failed, continuing from this test next run"),
    ("ok", "%]", r"^\S+\.py [.sxXp]+ *\[ *\d+%\]$|^[.sxX]+ +\[ *\d+%\]$"),
    ("ok", "PASSED", r"^\S+::\S.* PASSED(?: +\[ *\d+%\])?$|^PASSED \S+::"),
    ("none", "no tests ", r"^[= ]*no tests (?:ran|collected)\b"),
    ("none", "deselected in ", r"^[= ]*\d+ deselected(?:, \d+ warnings?)? in [\d.]+s"),
    ("none", "tests collected", r"^[= ]*\d+(?:/\d+)? tests? collected"),
    ("none", ": error: ", r"^\S*(?:pytest|__main__)\S*: error: (?:unrecognized|argument|invalid)"),
    ("none", "or directory not found", r"^ERROR: (?:file or directory not found|not found):"),
    ("none", "No module named", r"No module named '?pytest'?$"),
)

UNITTEST = (
    (
        "sum",
        "Ran ",
        r"^Ran [1-9]\d* tests? in [\d.]+s\n+(?:OK|PASSED|FAILED|NO TESTS RAN)\b.*$",
        r"\nFAILED\b",
    ),
    ("sum", "FAILED (", r"^FAILED \((?:[\w ]+=\d+(?:, )?)+\)$", r"FAILED"),
    ("ok", "OK", r"^OK(?: \((?:[\w ]+=\d+(?:, )?)+\))?$"),
    ("mark", "FAIL: ", r"^(?:FAIL|ERROR): \S+ \(.+\)$"),
    ("mark", "ERROR: ", r"^(?:FAIL|ERROR): \S+ \(.+\)$"),
    ("mark", "... ", r"^.*\.\.\. (?:FAIL|ERROR|unexpected success)$"),
    ("mark", "Ran ", r"^[.sxu]*[FE][.sxuFE]*$\n=+$"),
    ("ok", "... ok", r"^\S+ \(.+\).*\.\.\. ok$"),
    ("none", "Ran 0 tests", r"^Ran 0 tests in "),
    ("none", "NO TESTS RAN", r"^NO TESTS RAN"),
    ("none", "Start directory is not importable", r"^ImportError: Start directory is not importable"),
)

DOCTEST = (
    ("sum", "***Test Failed***", r"^\*\*\*Test Failed\*\*\* [1-9]\d* failure", r""),
    ("fail", "items had failures", r"^\d+ items? had failures:"),
    ("ok", "Test passed.", r"^Test passed\.$"),
)

BEHAVE = (
    (
        "sum",
        " passed, ",
        r"^\d+ (?:features?|scenarios?|steps?) passed, \d+ failed.*$",
        r"\b[1-9]\d* (?:failed|error|undefined|hook_error|cleanup_error)",
    ),
    ("fail", "Failing scenarios:", r"^(?:Failing|Errored) scenarios:"),
    ("mark", "undefined steps", r"implement step definitions for undefined steps"),
)

ROBOT = (
    ("sum", " passed, ", r"^\d+ tests?, \d+ passed, \d+ failed.*$", r"\b[1-9]\d* failed"),
    ("mark", "| FAIL |", r"\| FAIL \|$"),
)

CUCUMBER = (
    (
        "sum",
        " scenario",
        r"^\d+ scenarios? \(.*\)$",
        r"\b[1-9]\d* (?:failed|undefined|ambiguous)",
    ),
    ("fail", "Failing Scenarios:", r"^Failing Scenarios:"),
    ("none", "0 scenarios", r"^0 scenarios"),
)

RSPEC = (
    (
        "sum",
        " example",
        r"^[1-9]\d* examples?, \d+ (?:failures?|errors?).*$|^0 examples?, \d+ failures?, \d+ errors? occurred.*$",
        r"\b[1-9]\d* (?:failures?|errors?)\b",
    ),
    ("sum", '"summary_line":', r'"summary_line":"[^"]*"', r"\b[1-9]\d* (?:failures?|errors?)\b"),
    ("fail", "error occurred outside", r"\berrors? occurred (?:outside of examples|while loading)"),
    ("fail", "error occurred while loading", r"^An error occurred while loading "),
    ("fail", "Coverage (", r"^(?:Line|Branch) [Cc]overage \(.*\) is below the expected minimum coverage"),
    ("mark", "rspec ./", r"^rspec '?\./\S+[:\[]"),
    ("mark", "Failed examples:", r"^Failed examples:"),
    ("mark", "Failures:", r"^Failures:$"),
    ("mark", "Failure/Error:", r"\A(?!(?s:.*)Pending: \(Failures listed here are expected)(?s:.*?)^ +Failure/Error: "),
    ("mark", "(FAILED - ", r"\(FAILED - \d+\)$"),
    ("none", "0 examples, 0 failures", r"^0 examples, 0 failures$"),
    ("none", "No examples found", r"^No examples found\.?$"),
)

MINITEST = (
    (
        "sum",
        " assertions, ",
        r"^[1-9]\d* (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors.*$",
        r"\b[1-9]\d* (?:failures|errors)\b",
    ),
    ("mark", "Failure:", r"^ *(?:\d+\) )?Failure: *$"),
    ("mark", "Error:", r"^ +\d+\) Error: *$|^ ?Error:$\n\S+#"),
    ("mark", "igrations are pending", r"^Migrations are pending|PendingMigrationError"),
    ("mark", "rails test ", r"^(?:bin/)?rails test \S+:\d+$"),
    ("none", "0 runs, ", r"^0 (?:runs|tests), "),
)

PHPUNIT = (
    ("sum", "OK (", r"^OK \(\d+ tests?, \d+ assertions?\)", None),
    ("sum", "OK, but", r"^OK, but (?:there were issues|incomplete|some tests|there are issues).*$", None),
    (
        "sum",
        "Assertions: ",
        r"^Tests: \d+, Assertions: \d+.*$",
        r"\b(?:Errors|Failures): [1-9]",
    ),
    ("fail", "FAILURES!", r"^FAILURES!$"),
    ("fail", "ERRORS!", r"^ERRORS!$"),
    ("wfail", "PHP Fatal error", r"^(?:PHP )?(?:Fatal|Parse) error: "),
    ("wfail", "PHP Parse error", r"^(?:PHP )?(?:Fatal|Parse) error: "),
    ("wfail", "Fatal error:", r"^(?:PHP )?(?:Fatal|Parse) error: "),
    ("mark", "There w", r"^There (?:was|were) \d+ (?:failure|error)s?:$"),
    ("mark", " / ", r"^[.SIRWND]*[FE][.SIRWNDFE]* +\d+ / \d+ \( *\d+%\)$"),
    ("mark", "✘", r"^ +✘ "),
    ("none", "No tests executed!", r"^No tests executed!"),
    ("none", "Cannot open file", r'^Cannot open file "'),
)

PEST = (
    (
        "sum",
        "Tests:",
        r"^ *Tests: +\d+ (?:failed|passed|skipped|todos?|risky|warnings?|incomplete|deprecated)\b.*assertions?\).*$",
        r"\b[1-9]\d* failed",
    ),
    ("mark", "FAILED ", r"^ +FAILED +(?:Tests|P)\\"),
    ("mark", "FAIL  ", r"^ +FAIL +(?:Tests|P)\\"),
    ("mark", "⨯", r"^ +⨯ "),
    ("none", "No tests found", r"^ +INFO +No tests found\."),
)

_EXUNIT = r"(?:\d+ (?:doctests?|properties|property|tests?|features?), )+\d+ failures?.*$"

EXUNIT = (
    ("sum", "Finished in ", rf"^Finished in [\d.]+ seconds.*\n+{_EXUNIT}", r"\b[1-9]\d* (?:failures?|invalid)\b"),
    ("wsum", " failure", rf"^{_EXUNIT}", r"\b[1-9]\d* (?:failures?|invalid)\b"),
    ("sum", "Result: ", r"^Result: \d+(?:/\d+)? passed.*$", r"\b[1-9]\d* failed"),
    ("fail", "ERROR! Test suite aborted", r"^ERROR! Test suite aborted"),
    ("wfail", "== Compilation error", r"^== Compilation error in file "),
    ("wfail", "** (", r"^\*\* \((?:Mix|CompileError|SyntaxError|TokenMissingError)\b"),
    ("mark", ") test ", r"^ +\d+\) (?:test|doctest|property) .+ \(.+\)$"),
    ("none", "There are no tests to run", r"^There are no tests to run"),
    ("none", "0 tests, 0 failures", r"^0 tests, 0 failures"),
)

EUNIT = (
    ("sum", "All ", r"^ *All \d+ tests passed\.$|^All \d+ tests (?:were )?passed", None),
    ("sum", "Failed: ", r"^ *Failed: \d+\. +Skipped: \d+\. +Passed: \d+\.", r"Failed: [1-9]"),
    ("wsum", " failures", r"^\d+ tests, \d+ failures.*$", r"\b[1-9]\d* failures"),
    ("fail", "Error running tests", r"Error running tests|Failures occurred running tests"),
)

GLEAM = (
    ("sum", "passed, no failures", r"\d+ (?:tests )?passed, no failures|^\d+ tests?, no failures", None),
    ("wsum", " failure", r"^\d+ (?:tests|passed), \d+ failures?.*$", r"\b[1-9]\d* failures?"),
)

TAP = (
    ("sum", "# fail", r"^ *# fail(?:ed)?:? +\d+.*$", r"fail(?:ed)?:? +[1-9]"),
    ("sum", "# pass", r"^# pass +\d+\n(?:\n*# ok\n|\n*# skip)", None),
    ("wsum", "failing:", r"^ *failing: +\d+$", r"[1-9]"),
    ("sum", "# { total:", r"^# \{ total: .*\}", r"fail: [1-9]"),
    ("fail", "# Looks like you failed", r"^ *# Looks like (?:you failed|your test exited|you planned)"),
    ("fail", "Bail out!", r"^Bail out!"),
    ("sum", "ok ", "TAP"),
    ("mark", "not ok", "TAP"),
    ("ok", "ok ", "TAP"),
    ("none", "1..0", r"^1\.\.0\b"),
)
"""`"TAP"` stands for the rule in `tap`: results of the outermost level count, and TODO or SKIP is not a failure."""

BATS = (
    ("wsum", " test", r"^\d+ tests?, \d+ failures?.*$", r"\b[1-9]\d* failures?"),
    ("mark", "✗", r"^ *✗ "),
    ("fail", "bats warning: Executed", r"^# bats warning: Executed \d+ instead of expected"),
)

PROVE = (
    ("sum", "Result: ", r"^Result: (?:PASS|FAIL)$", r"FAIL"),
    ("sum", "All tests successful.", r"^All tests successful\.$", None),
    ("fail", "subtests", r"^ *Failed \d+/\d+ (?:subtests|test programs)"),
    ("mark", "Dubious", r"Dubious, test returned [1-9]"),
    ("mark", "# Failed test", r"^ *#\s+Failed test"),
    ("none", "Result: NOTESTS", r"^Result: NOTESTS$"),
)

BUSTED = (
    ("mark", " → ", r"^(?:Failure|Error) → "),
    (
        "sum",
        " success",
        r"^\d+ success(?:es)? / \d+ failures? / \d+ errors? / \d+ pending.*$",
        r"\b[1-9]\d* (?:failures?|errors?) /",
    ),
)

TESTTHAT = (
    ("sum", "[ FAIL ", r"^\[ FAIL \d+ \| WARN \d+ \| SKIP \d+ \| PASS \d+ \]", r"FAIL [1-9]"),
    ("fail", "Error: Test failures", r"^(?:Error: )?Test failures"),
    ("fail", "Status: ", r"^Status: \d+ ERRORs?"),
)

DBT = (("sum", "Done. PASS=", r"Done\. PASS=\d+ WARN=\d+ ERROR=\d+.*$", r"ERROR=[1-9]"),)

SHELLSPEC = (("sum", " example", r"^\d+ examples?, \d+ failures?.*$", r"\b[1-9]\d* failures?"),)

SCRIPTING = {
    "pytest": PYTEST,
    "unittest": UNITTEST,
    "doctest": DOCTEST,
    "behave": BEHAVE,
    "robot": ROBOT,
    "cucumber": CUCUMBER,
    "behat": CUCUMBER,
    "rspec": RSPEC,
    "minitest": MINITEST,
    "phpunit": PHPUNIT,
    "pest": PEST,
    "exunit": EXUNIT,
    "eunit": EUNIT,
    "gleam": GLEAM,
    "tap": TAP,
    "bats": BATS,
    "prove": PROVE,
    "busted": BUSTED,
    "testthat": TESTTHAT,
    "shellspec": SHELLSPEC,
    "dbt": DBT,
}
