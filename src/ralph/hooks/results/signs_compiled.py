"""Result signs of frameworks for compiled languages: Go, Rust, C, C++, JVM, .NET … `signs` explains the format."""

GO = (
    ("sum", "ok", r"^ok +\t? *\S+\t *(?:[\d.]+s|\(cached\)|coverage:.*)(?!.*\[no tests to run\]).*$", None),
    ("sum", "ok", r"^ok  +\S+ +(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\]).*$", None),
    ("fail", "FAIL", r"^FAIL[\t ]+[\w./-]+(?:\.test)?[\t ]+(?:[\d.]+s|\[(?:build|setup) failed\])"),
    ("fail", "[build failed]", r"^FAIL\b.*\[build failed\]"),
    ("fail", "[setup failed]", r"^(?:FAIL|#)\b.*\[setup failed\]"),
    ("fail", "--- FAIL: ", r"^ *--- FAIL: \S+"),
    ("fail", '"Action":"fail"', r'"Action":"fail"'),
    ("fail", '"Action":"build-fail"', r'"Action":"build-fail"'),
    ("sum", "DONE ", r"^DONE \d+ (?:tests?|runs).* in [\d.]+s$", r"\b[1-9]\d* (?:failures?|errors?)"),
    ("fail", "=== FAIL: ", r"^=== FAIL: "),
    ("sum", "Ran ", r"^(?:FAIL!|SUCCESS!) -- \d+ Passed \| \d+ Failed.*$", r"\b[1-9]\d* Failed"),
    ("fail", "Test Suite Failed", r"^Test Suite Failed$"),
    ("wfail", "FAIL", r"^FAIL$"),
    ("mark", "panic: ", r"^panic: "),
    ("mark", "exit status ", r"^exit status [1-9]"),
    ("mark", "fatal error: ", r"^fatal error: "),
    ("ok", "--- PASS: ", r"^ *--- PASS: "),
    ("ok", "PASS", r"^PASS$"),
    ("none", "no test files", r"^\?[\t ]+\S+[\t ]+\[no test files\]"),
    ("none", "[no tests to run]", r"\[no tests to run\]$"),
    ("none", "go: ", r"^go: (?:cannot find main module|go\.mod file not found|no such tool)"),
    ("none", "no packages to test", r"^no packages to test|matched no packages$"),
    ("none", "does not contain main module", r"does not contain main module or its selected dependencies"),
)

CARGO = (
    (
        "sum",
        "test result: ",
        r"^test result: (?:FAILED|ok)\. (?!0 passed; 0 failed; 0 ignored)\d+ passed; \d+ failed;.*$",
        r"FAILED|\b[1-9]\d* failed",
    ),
    (
        "sum",
        "tests run: ",
        r"^ *Summary \[.*\] +\d+(?:/\d+)? tests? run: .*$",
        r"\b[1-9]\d* (?:failed|timed out|exec failed)",
    ),
    (
        "sum",
        "test run: ",
        r"^ *Summary \[.*\] +\d+(?:/\d+)? tests? run: .*$",
        r"\b[1-9]\d* (?:failed|timed out|exec failed)",
    ),
    ("fail", "error: test failed", r"^error: (?:test failed, to rerun pass|test run failed|doctest failed)"),
    ("fail", "error: test run failed", r"^error: test run failed"),
    ("fail", "error: doctest failed", r"^error: doctest failed"),
    ("fail", " failed:", r"^error: \d+ targets? failed:"),
    ("wfail", "could not compile", r"^error: could not compile `"),
    ("mark", "... FAILED", r"^test .+ \.\.\. FAILED$"),
    ("mark", "FAIL [", r"^ +(?:FAIL|SIGABRT|SIGSEGV|TIMEOUT) \["),
    ("own", "error[E", r"^error\[E\d{4}\]: "),
    ("own", "panicked at", r"^thread '.+' (?:\(\d+\) )?panicked at "),
    ("ok", "... ok", r"^test .+ \.\.\. ok$"),
    ("none", "0 passed; 0 failed", r"^test result: ok\. 0 passed; 0 failed; 0 ignored"),
    ("none", "no tests to run", r"^error: no tests to run|^ *Summary .* 0 tests run: "),
    ("none", "could not find `Cargo.toml`", r"^error: could not find `Cargo.toml`"),
    ("none", "no such command", r"^error: no such (?:sub)?command"),
    ("none", "no test target named", r"^error: no (?:test|bin|lib|example|library)\b.* target"),
)

CTEST = (
    (
        "sum",
        "tests passed",
        r"^\d+% tests passed,? \d+ tests? failed out of [1-9]\d*$|^\d+% tests passed, \d+ tests failed.*$",
        r"\b[1-9]\d* tests? failed",
    ),
    ("fail", "The following tests FAILED", r"^The following tests FAILED:"),
    ("fail", "Errors while running CTest", r"^Errors while running CTest"),
    ("mark", "***", r"\*\*\*(?:Failed|Exception|Timeout|Not Run)"),
    ("mark", "Could not find executable", r"^Could not find executable "),
    ("none", "No tests were found", r"^No tests were found"),
)

GTEST = (
    ("sum", "[  PASSED  ]", r"^\[  PASSED  \] \d+ tests?\.$", None),
    ("fail", "[  FAILED  ]", r"^\[  FAILED  \] "),
    ("fail", " FAILED TEST", r"^ *[1-9]\d* FAILED TESTS?$"),
    ("sum", "test cases: ", r"^(?:\[doctest\] )?test cases: +\d+ \|.*$", r"\b[1-9]\d* failed"),
    ("sum", "All tests passed (", r"^All tests passed \(\d+ assertions? in \d+ test cases?\)$", None),
    ("sum", "Status: ", r"^\[doctest\] Status: (?:SUCCESS|FAILURE)!$", r"FAILURE"),
    ("sum", "*** ", r"^\*\*\* (?:No errors detected|\d+ failures? (?:is|are) detected)", r"failures?"),
    ("sum", " Tests ", r"^\d+ Tests \d+ Failures \d+ Ignored", r"\b[1-9]\d* Failures"),
    ("sum", "Checks: ", r"^\d+%: Checks: \d+, Failures: \d+, Errors: \d+", r"(?:Failures|Errors): [1-9]"),
    ("none", "No tests ran", r"^No tests ran$"),
    ("none", "0 tests from 0", r"^\[==========\] 0 tests from 0 test"),
)

MESON = (
    ("sum", "Fail:", r"^Fail: +\d+ *$", r"[1-9]"),
    ("sum", "Timeout:", r"^Timeout: +\d+ *$", r"[1-9]"),
    ("sum", "# FAIL:", r"^# FAIL: +\d+$", r"[1-9]"),
    ("sum", "# ERROR:", r"^# ERROR: +\d+$", r"[1-9]"),
    ("ok", "# PASS:", r"^# PASS: +\d+$"),
    ("mark", "FAIL: ", r"^FAIL:? \S+"),
    ("ok", "PASS: ", r"^PASS:? \S+"),
    ("none", "No tests defined", r"^No tests defined\."),
)

BAZEL = (
    ("sum", "Executed ", r"^Executed \d+ out of \d+ tests?: .*$", r"\b[1-9]\d* (?:fails?|timed? ?out|failed to build)"),
    ("fail", "FAILED in", r"^//\S+ +FAILED in "),
    ("fail", "FAILED TO BUILD", r"^//\S+ +FAILED TO BUILD"),
    ("fail", "TIMEOUT in", r"^//\S+ +TIMEOUT in "),
    ("fail", "NOT all tests were executed", r"^ERROR: .*(?:NOT all tests were executed|Build did NOT complete)"),
    ("none", "No test targets were found", r"No test targets were found"),
)

MAVEN = (
    (
        "sum",
        "Tests run: ",
        r"^ *(?:\[\w+\] )?Tests run: [1-9]\d*, Failures: \d+, Errors: \d+.*$",
        r"\b(?:Failures|Errors): [1-9]",
    ),
    ("fail", "There are test failures", r"There (?:are|were) test failures"),
    ("fail", "COMPILATION ERROR", r"^(?:\[ERROR\] )?COMPILATION ERROR :"),
    ("fail", "(default-test) on project", r"Failed to execute goal .*(?:surefire|failsafe).*"),
    ("wfail", "BUILD FAILURE", r"^(?:\[\w+\] )?BUILD FAILURE$"),
    ("mark", "<<< FAILURE!", r"<<< (?:FAILURE|ERROR)!"),
    ("ok", "BUILD SUCCESS", r"BUILD SUCCESS$"),
    ("none", "No tests to run", r"^(?:\[\w+\] )?No tests to run\."),
    ("none", "Tests are skipped", r"^(?:\[\w+\] )?Tests are skipped\."),
    ("none", "there is no POM", r"there is no POM in this directory"),
    ("none", "No tests were executed", r"No tests (?:were executed|matching pattern)"),
)

GRADLE = (
    ("sum", "tests completed", r"^\d+ tests? completed.*$", r"\b[1-9]\d* failed"),
    ("sum", "test completed", r"^\d+ tests? completed.*$", r"\b[1-9]\d* failed"),
    ("fail", "There were failing tests", r"There were failing tests"),
    ("fail", "est FAILED", r"^> Task :\S*[tT]est\S* FAILED$"),
    ("fail", "est' FAILED", r"^Execution failed for task ':\S*[tT]est\S*'"),
    ("wfail", "Execution failed for task", r"^Execution failed for task '"),
    ("wfail", "BUILD FAILED", r"^BUILD FAILED in "),
    ("mark", " FAILED", r"^\S.* > .+ FAILED$"),
    ("ok", "BUILD SUCCESSFUL", r"^BUILD SUCCESSFUL"),
    ("ok", " PASSED", r"^\S.* > .+ PASSED$"),
    ("none", "NO-SOURCE", r"^> Task :\S*:?test NO-SOURCE$"),
    ("none", "No tests found for given includes", r"No tests found for given includes"),
)

SBT = (
    (
        "sum",
        "Total ",
        r"^(?:\[\w+\] )?(?:Passed|Failed|Error): Total \d+, Failed \d+, Errors \d+.*$",
        r"(?:Failed|Errors) [1-9]",
    ),
    ("sum", "Tests: succeeded", r"^(?:\[\w+\] )?Tests: succeeded \d+, failed \d+.*$", r"failed [1-9]"),
    ("fail", "*** FAILED ***", r"\*\*\* FAILED \*\*\*"),
    ("fail", "Failed tests:", r"^(?:\[error\] )?Failed tests:"),
    ("wfail", "Compilation failed", r"Compilation failed$"),
    ("none", "No tests were executed", r"No tests (?:were executed|to run)"),
)

JUNIT = (
    ("sum", "tests failed", r"^\[ +\d+ tests failed +\]$", r"[1-9]"),
    ("sum", "OK (", r"^OK \(\d+ tests?\)$", None),
    ("sum", "Tests run: ", r"^Tests run: \d+,  ?Failures: \d+", r"Failures: [1-9]"),
    ("fail", "FAILURES!!!", r"^FAILURES!!!$"),
    ("sum", "Total tests run: ", r"^Total tests run: \d+,.*$", r"Failures: [1-9]"),
)

CLOJURE = (
    ("sum", " assertions", r"^\d+ failures, \d+ errors\.$", r"\b[1-9]\d* (?:failures|errors)"),
    ("sum", " assertions", r"^\d+ tests, \d+ assertions, .*failures?\.$", r"\b[1-9]\d* (?:failures?|errors?)"),
    ("mark", "FAIL in ", r"^(?:FAIL|ERROR) in "),
    ("mark", "ERROR in ", r"^(?:FAIL|ERROR) in "),
    ("none", "Ran 0 tests containing", r"^Ran 0 tests containing"),
)

DOTNET = (
    (
        "sum",
        "! ",
        r"^ *[^\W\d_]+ ?! *[-–:] *[^\d\n,]*\d+,[^\d\n,]*\d+,[^\d\n,]*\d+,[^\d\n,]*\d+,.*$",
        r"^ *[^\W\d_]+ ?! *[-–:] *[^\d\n,]*[1-9]\d*,",
    ),
    ("sum", "Test Run ", r"^Test Run (?:Failed|Successful|Aborted)\.", r"Failed|Aborted"),
    ("sum", "Total tests:", r"^Total tests: +\d+(?:\n +\w+: +\d+)*", r"Failed: +[1-9]"),
    ("sum", "Test summary: ", r"^Test summary: total: \d+, failed: \d+.*$", r"failed: [1-9]"),
    ("sum", "Test run summary: ", r"^Test run summary: \S+!", r"Failed"),
    ("fail", "The active test run was aborted", r"^The active test run was aborted"),
    ("wfail", "Build FAILED", r"^Build FAILED\."),
    ("wfail", "error CS", r": error (?!MSB1003)(?:CS|FS|MSB|NU)\d{4}:"),
    ("wfail", "error FS", r": error (?!MSB1003)(?:CS|FS|MSB|NU)\d{4}:"),
    ("wfail", "error MSB", r": error (?!MSB1003)(?:CS|FS|MSB|NU)\d{4}:"),
    ("mark", "  Failed ", r"^ +Failed \S+ \[(?:< )?[\d.]+ ?\w+\]"),
    ("none", "No test is available", r"^No test (?:is available in|matches the given)"),
    ("none", "Zero tests ran", r"^Test run summary: Zero tests ran"),
    ("none", "MSB1003", r"error MSB1003"),
)

SWIFT = (
    (
        "sum",
        "Executed ",
        r"^[ \t]*Executed [1-9]\d* tests?, with .*\d+ failures?.*$",
        r"\bwith (?:\d+ tests? skipped and )?[1-9]\d* failures?",
    ),
    ("sum", "Test run with", r"^. Test run with [1-9]\d* tests?.* (?:passed|failed) after .*$", r" failed after"),
    ("sum", "** TEST ", r"^\*\* TEST (?:EXECUTE )?(?:SUCCEEDED|FAILED) \*\*", r"FAILED"),
    ("fail", "** TEST BUILD FAILED", r"^\*\* (?:TEST )?BUILD FAILED \*\*"),
    ("fail", "** BUILD FAILED", r"^\*\* (?:TEST )?BUILD FAILED \*\*"),
    ("fail", "' failed", r"^Test Suite '.+' failed at "),
    ("wfail", "error: ", r"^.+\.swift:\d+:\d+: error: (?!-\[)"),
    ("wfail", "error: fatalError", r"^error: (?:fatalError|emit-module command failed|Exited with)"),
    ("mark", "' failed (", r"^Test Case '.+' failed \("),
    ("none", "error: no tests found", r"^error: no tests found"),
)

HASKELL = (
    ("sum", "Test suite ", r"^Test suite \S+: (?:PASS|FAIL)$", r"FAIL"),
    ("sum", " test suites (", r"^\d+ of \d+ test suites \(\d+ of \d+ test cases\) passed\.$", None),
    ("sum", " example", r"^\d+ examples?, \d+ failures?.*$", r"\b[1-9]\d* failures?"),
    ("sum", " tests passed", r"^All \d+ tests passed \(", None),
    ("sum", " tests failed", r"^\d+ out of \d+ tests failed \(", r""),
    ("sum", "Cases: ", r"^Cases: \d+  Tried: \d+  Errors: \d+  Failures: \d+", r"(?:Errors|Failures): [1-9]"),
    ("sum", "OK, passed", r"^\+\+\+ OK, passed \d+ tests", None),
    ("fail", "*** Failed!", r"^\*\*\* Failed! "),
    ("fail", "Test suite failure for package", r"Test suite failure for package|^Test suite failed"),
    ("wfail", ": error:", r"^\S+\.hs:\d+:\d+: error:"),
    ("wfail", "Failed to build", r"^(?:Error: )?\[?\S*\]?\n?.*Failed to build "),
)

DART = (
    ("sum", "All tests passed!", r"^(?:\d\d:\d\d \+\d+.*: )?(?:🎉 \d+ tests? passed\.|All tests passed!)$", None),
    ("sum", "Some tests failed", r"^\d\d:\d\d \+\d+.*: Some tests failed\.$", r""),
    ("mark", " [E]", r"^\d\d:\d\d \+\d+.* \[E\]$"),
    ("mark", " -", r"^\d\d:\d\d \+\d+(?: ~\d+)? -[1-9]\d*: "),
    ("none", "No tests were found", r"No tests (?:were found|ran)\."),
)

ZIG = (
    ("sum", " passed; ", r"^\d+ passed; \d+ skipped; \d+ failed\.$", r"\b[1-9]\d* failed"),
    ("sum", " tests passed.", r"^All \d+ tests passed\.$", None),
    ("sum", "Build Summary", r"^Build Summary: .*tests passed.*$", r"\b[1-9]\d* failed"),
    ("fail", "test command failed", r"^error: the following (?:test )?command (?:failed|terminated|exited)"),
    ("mark", "FAIL (", r"^\d+/\d+ .*FAIL \("),
    ("wfail", "error: ", r"^\S+\.zig:\d+:\d+: error: "),
)

JULIA = (
    ("sum", "did not pass", r"^(?:ERROR: )?(?:LoadError: )?Some tests did not pass: .*$", r""),
    ("sum", "tests passed", r"^ *Testing \S+ tests passed", None),
    ("fail", "Test Failed at", r"^.*: Test Failed at "),
    ("ok", "Test Summary:", r"^Test Summary: "),
)

FORGE = (
    (
        "sum",
        "uite result: ",
        r"^(?:Test|Suite) result: (?:ok|FAILED)\. \d+ passed; \d+ failed.*$",
        r"\b[1-9]\d* failed",
    ),
    (
        "sum",
        "test result: ",
        r"^(?:Test|Suite) result: (?:ok|FAILED)\. \d+ passed; \d+ failed.*$",
        r"\b[1-9]\d* failed",
    ),
    ("sum", " test suite", r"^Ran \d+ test suites?.*: \d+ tests? passed, \d+ failed.*$", r"\b[1-9]\d* failed"),
    ("fail", "Encountered ", r"^Encountered (?:a total of )?\d+ failing tests?"),
    ("wfail", "Compiler run failed", r"^(?:Error: )?Compiler run failed"),
    ("none", "No tests found in project", r"^No tests (?:found in project|match the provided pattern)"),
)

OCAML = (
    ("sum", "Test Successful in", r"^Test Successful in [\d.]+s\. \d+ tests? run\.", None),
    ("sum", " failure", r"^\d+ failures?! in [\d.]+s\. \d+ tests? run\.", r""),
)

TERRAFORM = (("sum", " passed, ", r"^(?:Success|Failure)! \d+ passed, \d+ failed.*$", r"\b[1-9]\d* failed"),)

PESTER = (
    ("sum", "Tests Passed: ", r"^Tests Passed: \d+, Failed: \d+.*$", r"Failed: [1-9]"),
    ("mark", "[-] ", r"^ *\[-\] "),
)

COMPILED = {
    "go": GO,
    "cargo": CARGO,
    "ctest": CTEST,
    "gtest": GTEST,
    "meson": MESON,
    "bazel": BAZEL,
    "maven": MAVEN,
    "gradle": GRADLE,
    "sbt": SBT,
    "junit": JUNIT,
    "clojure": CLOJURE,
    "dotnet": DOTNET,
    "swift": SWIFT,
    "haskell": HASKELL,
    "dart": DART,
    "zig": ZIG,
    "julia": JULIA,
    "forge": FORGE,
    "ocaml": OCAML,
    "terraform": TERRAFORM,
    "pester": PESTER,
}
