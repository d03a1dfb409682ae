"""What a runner of scripts says about the script it ran, and what is left of tests that nobody sums up."""

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
    ("handling the", r"^Script .* handling the (\S+) event returned with error code"),
    ("errored after", r"'(\S+)' errored after"),
)
"""What was found in the text, and who failed. A name that is no test's says that something else failed."""

FAILED = (
    ("Test failed.", r"^ *(?:npm (?:ERR!|error)|\S*ELIFECYCLE\S*) +Test failed\."),
    ("Command failed", r"^(?:error|.*ELIFECYCLE\S*) +Command failed with exit code [1-9]"),
    ("exited (", r"^ *ERROR  run failed: command +exited \([1-9]"),
    ("evaluation failed", r"^ *evaluation failed :\("),
    (": FAIL", r"^ *[\w.-]+: (?:FAIL\b.*(?:✖|code|in|setup|cmd).*|commands failed)"),
    ("commands failed", r"^ERROR: +\S+: commands failed"),
    ("rake aborted!", r"^rake aborted!"),
    ("Task ", r'^Warning: Task "test.*" failed'),
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
"""An exception as the last line of a program that was to test something."""

_PASS = r"(?:tests? |specs? |checks? |cases? |assertions? )?(?:passed|passing|ok|succeeded|successful|success|pass)"
_FAIL = r"(?:tests? |specs? |checks? |cases? |assertions? )?(?:failed|failing|failures?|errors?|fail|errored)"

GENERIC = (
    ("wsum", "ass", rf"^.*\b\d+ {_PASS}\b.*\b\d+ {_FAIL}\b.*$", rf"\b[1-9]\d* {_FAIL}\b"),
    ("wsum", "ail", rf"^.*\b\d+ {_FAIL}\b.*\b\d+ {_PASS}\b.*$", rf"\b[1-9]\d* {_FAIL}\b"),
    (
        "wsum",
        "ail",
        r"^\W*(?:[Tt]ests? )?(?:[Ff]ailed|[Ff]ailures|FAILED|FAIL|[Ff]ail)\s*[:=]\s*\d+\b.*$",
        r"[:=]\s*[1-9]",
    ),
    ("wsum", "ail", rf"^\W*[1-9]\d* (?:of|out of|/) ?\d+ {_FAIL}\b.*$|^\W*[1-9]\d* {_FAIL}\W*$", r""),
    ("wfail", "ests", r"^\W*(?:[Ss]ome|SOME)? ?(?:[Tt]ests?|TESTS?) (?:[Ff]ailed|FAILED)\W*$"),
    ("wfail", "ailed", r"^\W*(?:[Ss]ome|One or more|Some of the|There (?:are|were) failing) .*tests? failed\W*$"),
    ("mark", "FAIL", r"^\W*FAIL(?:ED|URE)?\b[: ]"),
    ("mark", "FAIL", r"(?:\.\.\.|[:\]-]) *FAIL(?:ED)?!?$"),
    ("mark", "not ok", "TAP"),
    ("mark", "✗", r"^\s*(?:✗|✘|✖|❌) "),
    ("mark", "✘", r"^\s*(?:✗|✘|✖|❌) "),
    ("mark", "✖", r"^\s*(?:✗|✘|✖|❌) "),
    ("mark", "❌", r"^\s*(?:✗|✘|✖|❌) "),
    ("mark", "error", r"^.+:\d+:(?:\d+:)? (?:fatal )?error: |error TS\d+: "),
    ("ok", "ass", r"(?i)\ball \d* ?(?:tests?|checks?|specs?) (?:have )?pass"),
    ("ok", "✓", r"^\s*(?:✓|✔|✅) "),
    ("ok", "✔", r"^\s*(?:✓|✔|✅) "),
    ("ok", "✅", r"^\s*(?:✓|✔|✅) "),
    ("ok", "PASS", r"^\W*PASS(?:ED)?\b"),
)

NOTHING = (
    r"no test specified|^npm (?:ERR!|error) (?:[Mm]issing script|Could not read package\.json)|"
    r"^error Command \"\S+\" not found|Couldn't find a package\.json|ERR_PNPM_NO_SCRIPT|ERR_PNPM_NO_IMPORTER|"
    r"^error: Script not found|^make: \*\*\* (?!\[)|: (?:command )?not found$|^'?\S+'? is not recognized as|"
    r"No module named '?(?:pytest|nose2?|tox|nox|behave|coverage|unittest2)'?$|: No such file or directory$|"
    r": Permission denied$|^error: Justfile does not contain recipe|^No justfile found|^npm (?:ERR!|error) 404|"
    r"^task: (?:Task \"|No Taskfile)|^Unknown command: |^ERROR: No matching (?:distribution|test)|"
    r"command not found: |^rake aborted!\n+Don't know how to build task|Don't know how to build task|"
    r"^Could not open input file: |^error: no such command|^fish: Unknown command|"
    r"^\S+: can't open file |^node:internal/modules/cjs/loader.*\n(?:.*\n){2,4}Error: Cannot find module '/"
)
"""What was to run is not there."""
