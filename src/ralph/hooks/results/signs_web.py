"""Result signs of JavaScript and TypeScript frameworks. `signs` explains the format."""

JEST = (
    (
        "sum",
        "Tests:",
        r"^Tests: +\d+ (?:failed|passed|skipped|todo|total|pending)\b(?!.*assertions?\)).*$",
        r"\b[1-9]\d* failed\b",
    ),
    ("sum", "Test Suites:", r"^Test Suites: +\d.*$", r"\b[1-9]\d* failed\b"),
    ("sum", '"numFailedTests":', r'"numFailedTests": ?\d+', r"[1-9]"),
    ("fail", '"numRuntimeErrorTestSuites":', r'"numRuntimeErrorTestSuites": ?[1-9]'),
    ("fail", "overage", r"^Jest: .*[cC]overage .*(?:not met|does not meet)"),
    ("fail", "Test suite failed to run", r"^ *● +Test suite failed to run"),
    ("mark", "FAIL ", r"^ ?FAIL +(?:\S+ )?\S+\.[cm]?[jt]sx?\b"),
    ("mark", "✕", r"^ *✕ "),
    ("mark", "●", r"^ +● +(?![A-Z]+$|Console$|Validation|Deprecation|Multiple configurations|Cannot log|process\.).+"),
    ("mark", "obsolete", r"^ › \d+ snapshots? (?:obsolete|file obsolete).*--ci"),
    ("ok", "PASS ", r"^ ?PASS +(?:\S+ )?\S+\.[cm]?[jt]sx?\b"),
    ("none", "No tests found, exiting", r"^No tests found, exiting with code"),
    ("none", "No tests found related", r"^No tests found related to files changed"),
)

VITEST = (
    ("sum", "Test Files ", r"^ *Test Files +\d+ .*$", r"\b[1-9]\d* failed\b"),
    ("sum", " Tests ", r"^ *Tests +\d+ (?:passed|failed|skipped|todo|expected fail)\b.*$", r"\b[1-9]\d* failed\b"),
    ("fail", "Errors ", r"^ *Errors +[1-9]\d* errors?$"),
    ("fail", "Type Errors ", r"^ *Type Errors +[1-9]"),
    ("fail", "overage for", r"^ERROR: Coverage for .* does not meet .*threshold"),
    ("fail", "Unhandled ", r"^⎯+ Unhandled (?:Errors?|Rejection) ⎯+"),
    ("fail", "Startup Error", r"^⎯+ (?:Startup|Config) Error ⎯+"),
    ("mark", " Failed ", r"^⎯+ Failed (?:Tests|Suites) \d+ ⎯+"),
    ("mark", "FAIL ", r"^ *FAIL +\S+"),
    ("mark", " failed", r"^ *❯ \S+.*\(\d+ tests?.*\b[1-9]\d* failed"),
    ("mark", "×", r"^ +× \S"),
    ("ok", "✓ ", r"^ ✓ \S+.*(?:\(\d+ tests?|\d+ms)"),
    ("none", "No test files found", r"^No test (?:files|suite) found"),
    ("none", "No test found", r"^No test(?:s)? found"),
)

MOCHA = (
    ("sum", " passing", r"^ *[1-9]\d* passing(?: \([\d.]+ ?\w+\))?$", None),
    ("sum", " failing", r"^ *\d+ failing$", r"[1-9]\d* failing"),
    ("sum", '"failures": ', r'^ +"passes": \d+,\n +"pending": \d+,\n +"failures": \d+,', r'"failures": [1-9]'),
    ("mark", ") ", r"^ {2,}\d+\) \S.*$\n(?:.*\n){0,3}? {4,}(?:\w*(?:Error|Exception)\b|at |\+ expected)"),
    ("own", ") ", r"^ {2,}\d+\) \S"),
    (
        "own",
        "Error",
        r"^ ?(?:(?:Exception during run: )?Error: Cannot find module|TSError\b|(?:Syntax|Reference|Type)Error\b)",
    ),
    ("mark", ": Timeout of", r"^ +(?:Uncaught )?Error: Timeout of \d+ms exceeded"),
    ("mark", "+ expected - actual", r"^ +\+ expected - actual$"),
    ("none", "No test files found", r"^(?:Error|Warning): (?:No test files found|Cannot find any files matching)"),
    ("none", "0 passing", r"^ *0 passing \("),
)

NODE = (
    ("sum", "ℹ fail ", r"^ℹ fail \d+$", r"[1-9]"),
    ("sum", "# cancelled ", r"^# fail \d+$", r"[1-9]"),
    ("fail", " cancelled ", r"^(?:#|ℹ) cancelled [1-9]\d*$"),
    ("ok", "ℹ pass ", r"^ℹ pass [1-9]\d*$"),
    ("mark", "failing tests:", r"^✖ failing tests:$"),
    ("fail", "overage does not meet", r"[cC]overage does not meet threshold"),
    ("mark", "not ok", "TAP"),
    ("mark", "✖", r"^ *✖ .+ \([\d.]+ms\)$"),
    ("own", "'ERR_ASSERTION'", r"^ +code: 'ERR_ASSERTION',?$"),
    ("ok", "✔", r"^ *✔ .+ \([\d.]+ms\)$"),
    ("ok", "ok ", "TAP"),
    ("none", " tests 0", r"^(?:#|ℹ) tests 0$"),
    ("none", "Could not find", r"^Could not find '"),
)

AVA = (
    ("sum", " passed", r"^ *\d+ tests? passed$", None),
    ("sum", " failed", r"^ *\d+ tests? failed$", r"[1-9]"),
    ("fail", " uncaught exception", r"^ *[1-9]\d* (?:uncaught exceptions?|unhandled rejections?)$"),
    ("mark", "✘ [fail]", r"✘ \[fail\]:"),
    ("own", "✖", r"^ *✖ "),
    ("none", "Couldn’t find any files", r"Couldn[’']t find any files to test"),
)

TAPJS = (
    ("sum", "Asserts:", r"^ *# ?Asserts: .*$|^ *Asserts: .*$", r"\b[1-9]\d* failed"),
    ("sum", "Suites:", r"^ *#? ?Suites: .*$", r"\b[1-9]\d* failed"),
    ("sum", "# { total:", r"^# \{ total: .*\}", r"fail: [1-9]"),
    ("fail", "ERROR: Coverage for", r"^ERROR: Coverage for .* does not meet"),
    (
        "fail",
        "ERROR: incomplete or missing coverage",
        r"^# ?(?:ERROR: )?(?:incomplete|missing).*coverage|^ERROR: incomplete",
    ),
    ("fail", "No coverage generated", r"^# No coverage generated\n(?!.*\n*# time)$"),
)

JASMINE = (
    ("sum", " spec", r"^[1-9]\d* specs?, \d+ failures?.*$", r"\b[1-9]\d* failures?"),
    ("fail", "Incomplete:", r"^Incomplete: (?:fit|No specs|not all)"),
    ("none", "No specs found", r"^No specs found"),
)

KARMA = (
    ("sum", "Executed ", r"Executed \d+ of \d+.*$", r"\([1-9]\d* FAILED\)|\bFAILED\b|ERROR"),
    ("sum", "TOTAL: ", r"^TOTAL: \d+ (?:FAILED|SUCCESS).*$", r"\b[1-9]\d* FAILED"),
    ("mark", " FAILED", r"^(?:Chrome|Firefox|Safari|HeadlessChrome|ChromeHeadless)\b.* FAILED$"),
)

UVU = (
    ("sum", "Total: ", r"^ +Total: +(\d+)\n +Passed: +(?!\1\n)\d+\n", r""),
    ("sum", "Total: ", r"^ +Total: +([1-9]\d*)\n +Passed: +\1\n", None),
    ("mark", "FAIL  ", r'^ +FAIL +"'),
)

DENO = (
    ("sum", " passed ", r"^(?:ok|FAILED) \| \d+ passed.*\| \d+ failed.*$", r"\b[1-9]\d* failed"),
    ("fail", "error: Test failed", r"^error: Test failed"),
    ("wfail", "error: Type checking failed", r"^error: Type checking failed"),
    ("wfail", "error: ", r"^error: (?:Module not found|Uncaught|The module's source code could not be parsed)"),
    ("mark", "... FAILED", r"^.* \.\.\. FAILED \("),
    ("own", "--no-check", r"Re-run with --no-check to skip type-checking"),
    ("none", "No test modules found", r"^error: No test modules found"),
)

BUN = (
    ("sum", " fail", r"^ *\d+ fail$", r"[1-9]"),
    ("ok", " pass", r"^ *\d+ pass$"),
    ("fail", " error", r"^ *[1-9]\d* errors?$\n(?:.*\n){0,2}Ran "),
    ("mark", "(fail)", r"^\(fail\) "),
    ("mark", "✗", r"^✗ "),
    ("ok", "(pass)", r"^\(pass\) "),
    ("none", "No tests found!", r"^No tests found!"),
    ("none", "did not match any test files", r"^The following filters did not match any test files"),
)

PLAYWRIGHT = (
    ("sum", " failed", r"^ +[1-9]\d* failed$", r""),
    ("sum", " passed (", r"^ +[1-9]\d* passed \([\d.]+m?s?m?\)$", None),
    ("sum", " flaky", r"^ +[1-9]\d* flaky$", None),
    ("fail", " interrupted", r"^ +[1-9]\d* interrupted$"),
    ("fail", "did not run", r"^ +[1-9]\d* did not run$"),
    ("fail", "was not a part of any test", r"^ +[1-9]\d* errors? (?:was|were) not a part of any test"),
    (
        "wfail",
        "Process from config.webServer",
        r"^Error: (?:Process from config\.webServer|Timed out waiting \d+ms from config)",
    ),
    ("mark", "✘", r"^ +✘ +\d+ "),
    ("none", "No tests found", r"^Error: No tests found"),
)

CYPRESS = (
    ("sum", "of", r"^ *✖ +\d+ of \d+ failed \(\d+%\).*$", r""),
    ("sum", "All specs passed!", r"^ *✔ +All specs passed!.*$", None),
    ("sum", "Failing:", r"^ *│ Failing: +\d+ +│$", r"[1-9]"),
    ("fail", "Cypress failed to", r"^Cypress failed to (?:verify|start|run)"),
    *MOCHA,
    ("none", "Can't run because no spec files", r"Can't run because no spec files"),
)

WDIO = (
    ("sum", "Spec Files:", r"^Spec Files:\s+\d.*$", r"\b[1-9]\d* failed"),
    ("sum", " passed", r"^TOTAL ASSERTIONS FAILED|^OK\. \d+ (?:total )?assertions passed.*$", r"FAILED"),
)

NEWMAN = (("wsum", "assertions │", r"^│ +assertions │ +\d+ │ +\d+ │$", r"│ +[1-9]\d* │$"),)

XML = (
    (
        "wsum",
        "<testsuite",
        r"<testsuites?\b[^>]*\bfailures=\"\d+\"[^>]*>",
        r"\b(?:failures|errors)=\"[1-9]",
    ),
)

WEB = {
    "jest": JEST,
    "vitest": VITEST,
    "mocha": MOCHA,
    "node": NODE,
    "ava": AVA,
    "tapjs": TAPJS,
    "jasmine": JASMINE,
    "karma": KARMA,
    "uvu": UVU,
    "deno": DENO,
    "bun": BUN,
    "playwright": PLAYWRIGHT,
    "cypress": CYPRESS,
    "wdio": WDIO,
    "newman": NEWMAN,
    "junit-xml": XML,
}
