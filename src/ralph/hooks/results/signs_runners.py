"""Result signs of script runners, and what remains of tests that are not summarized."""

NAMED = (
    ("npm", r"^npm (?:ERR!|error) Lifecycle script `([^`]+)` failed"),
    ("npm ERR!", r"^npm ERR! \S+@\S+ (\S+): `"),
    ("ERR_PNPM", r"ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL\S*\s+\S+ (\S+): "),
    ('error: script "', r'^error: script "([^"]+)" (?:exited with code [1-9]|was terminated)'),
    ("make", r"^\w*make(?:\[\d+\])?: \*\*\* \[(?:[^\]:]*:\d+: )?([^\]]+)\] \S"),
    ("Recipe", r"^error: Recipe `([^`]+)` failed"),
    ("task: Failed", r'^task: Failed to run task "([^"]+)"'),
    ("#", r"^ *Failed: +.*?\S+#([\w:.-]+)"),
    ("lerna ERR!", r"^lerna ERR! (?:npm|yarn|pnpm) run (\S+) (?:exited|stderr)"),
    ("nx run", r"^ *✖ +(?:\d+/\d+ +failed|nx run [^:\s]+:([\w-]+))"),
    ("Running target", r"Running targets? ([\w-]+) for .* failed"),
    ("nox > Session", r"^nox > Session (\S+?)(?:\(.*\))? failed\."),
    ("nox > *", r"^nox > \* (\S+?)(?:\(.*\))?: failed"),
    ("handling the", r"^Script .* handling the (\S+) event returned with error code"),
    ("errored after", r"'(\S+)' errored after"),
)
"""The signs found in the text, and what failed. A name that is not a test's means that something else failed."""

FAILED = (
    ("A complete log of this run", r"^npm (?:ERR!|error) A complete log of this run can be found in"),
    ("Test failed.", r"^ *(?:npm (?:ERR!|error)|\S*ELIFECYCLE\S*|ERROR) +Test failed\."),
    ("Command failed", r"^(?:error|.*ELIFECYCLE\S*) +Command failed with exit code [1-9]"),
    ("exited (", r"^ *ERROR  run failed: command +exited \([1-9]"),
    ("evaluation failed", r"^ *evaluation failed :\("),
    (": FAIL", r"^ *[\w.-]+: (?:FAIL\b.*(?:✖|code|in|setup|cmd).*|commands failed)"),
    ("commands failed", r"^ERROR: +\S+: commands failed"),
    ("rake aborted!", r"^rake aborted!"),
    ("Task ", r'^Warning: Task "test.*" failed'),
)

COVERAGE = (
    r"^Jest: .*[cC]overage .*(?:not met|does not meet)|^ERROR: Coverage for .* does not meet|"
    r"^(?:FAIL|ERROR:?) Required test coverage of .* not reached|[cC]overage failure: total of .* is less than|"
    r"^(?:Line|Branch) [cC]overage \(.*\) is below the expected minimum|Coverage is below the failure threshold|"
    r"Expected minimum coverage of \d+%|[cC]overage does not meet threshold|Rule violated for bundle .*covered ratio"
)

CRASHES = (
    r"\(core dumped\)|^(?:.*: )?(?:\w+ \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction|Killed|Aborted|"
    r"Floating point exception|Terminated|Speicherzugriffsfehler|Erreur de segmentation|Violación de segmento|"
    r"Errore di segmentazione|Falha de segmentação)(?: |:|$)|JavaScript heap out of memory|"
    r"^Command timed out after |^Timed out after |^timeout: |^error: Process completed with exit code [1-9]"
)

_LAST = (
    r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Failure)(?::.*| \[\w+\].*)?$|^Uncaught \w*Error|"
    r"^panic: |Assertion .*failed|assertion failed|^E  +\w*Error\b|^error: "
)
LAST_WORDS = _LAST
"""An exception as the last line of a program that was supposed to test something."""

_OF = r"(?:(?:tests?|specs?|checks?|cases?|assertions?|modules?|suites?) )?"
_PASS = rf"{_OF}(?:passed|passing|ok|succeeded|successful|success|pass)"
_FAIL = rf"{_OF}(?:failed|failing|failures?|errors?|fail|errored)"
_BAD = rf"(?i)\b[1-9]\d* {_FAIL}\b"
_LABEL = r"(?:tests? )?(?:failed|failures|failing|fail)(?: \w+)?[ \t]*[:=][ \t]*"

GENERIC = (
    ("wsum", "", rf"(?i)^.*\b\d+ {_PASS}\b.*\b\d+ {_FAIL}\b.*$", _BAD),
    ("wsum", "", rf"(?i)^.*\b\d+ {_FAIL}\b.*\b\d+ {_PASS}\b.*$", _BAD),
    ("wsum", "", rf"(?i)^[^\w\n]*{_LABEL}\d+\b.*$", rf"(?i)^[^\w\n]*{_LABEL}[1-9]"),
    ("wsum", "", rf"(?i)^[^\w\n]*[1-9]\d*(?: of | out of | ?/ ?)\d+ {_FAIL}\b.*$", r""),
    ("wsum", "", rf"(?i)^[^\w\n]*[1-9]\d* {_FAIL}[^\w\n]*$", r""),
    ("wfail", "", r"(?i)^[^\w\n]*(?:(?:some|one or more|some of the) )?tests? failed[^\w\n]*$"),
    ("wfail", "", r"(?i)^[^\w\n]*there (?:are|were) (?:test failures|failing tests)\b"),
    ("mark", "FAIL", r"^[^\w\n]*FAIL(?:ED|URE)?\b[: ]"),
    ("mark", "FAIL", r"(?:\.\.\.|[:\]-]) *FAIL(?:ED)?!?$"),
    ("mark", "not ok", "TAP"),
    ("mark", "✗", r"^[ \t]*(?:✗|✘|✖|❌) "),
    ("mark", "✘", r"^[ \t]*(?:✗|✘|✖|❌) "),
    ("mark", "✖", r"^[ \t]*(?:✗|✘|✖|❌) "),
    ("mark", "❌", r"^[ \t]*(?:✗|✘|✖|❌) "),
    ("mark", "error", r"^.+:\d+:(?:\d+:)? (?:fatal )?error: |error TS\d+: "),
    ("none", "make: ", r"^\w*make: (?:Nothing to be done for|['`\"]\S+['\"] is up to date)"),
    ("ok", "ass", r"(?i)\ball \d* ?(?:tests?|checks?|specs?) (?:have )?pass"),
    ("ok", "✓", r"^[ \t]*(?:✓|✔|✅) "),
    ("ok", "✔", r"^[ \t]*(?:✓|✔|✅) "),
    ("ok", "✅", r"^[ \t]*(?:✓|✔|✅) "),
    ("ok", "PASS", r"^[^\w\n]*PASS(?:ED)?\b"),
)

NOTHING = (
    r"no test specified|^npm (?:ERR!|error) (?:[Mm]issing script|(?:enoent )?Could not read package\.json|404)|"
    r"^error Command \"\S+\" not found|Couldn't find a package\.json|ERR_PNPM_NO_SCRIPT|ERR_PNPM_NO_IMPORTER|"
    r"^error: Script not found|^error: no such command|^make: \*\*\* (?!\[)|^'?\S+'? is not recognized as|"
    r"^(?:/\S*/)?\w*sh: .*(?:not found|No such file or directory|Permission denied)$|command not found: |"
    r"^\S+: line \d+: .*: (?:command not found|No such file or directory|Permission denied)$|"
    r"^env: .*: (?:No such file or directory|Permission denied)$|^fish: Unknown command|^Unknown command: |"
    r"No module named '?(?:pytest|nose2?|tox|nox|behave|coverage)'?$|^ERROR: No matching (?:distribution|test)|"
    r"^error: Justfile does not contain recipe|^No justfile found|^task: (?:Task \"|No Taskfile)|"
    r"Couldn't find a script named|^Command not found: |Failed to spawn: |npx canceled due to missing packages|"
    r"did not match any directory/file|^service \".*\" is not running|^(?:docker: |Error response from daemon)|"
    r"Cannot connect to the Docker daemon|^Task '\S+' not found in |Don't know how to build task|"
    r"^Could not open input file: |^\S+: can't open file |"
    r"^node:internal/modules/cjs/loader.*\n(?:.*\n){2,4}Error: Cannot find module '/"
)
"""The thing to run does not exist."""
