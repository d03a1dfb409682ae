"""Every name in the state folder, with a table of what each file is and who writes it. No other module spells one.

The names that hooks share with the loop are imported, because hooks import nothing of the loop. On disk names never
change: old state stays readable.
"""

from __future__ import annotations

from msgspec import Struct

from ralph.hooks import policy

# In the state folder itself.
ERROR_LOGS = "logs"
HOOK_INSTALLS = "hooks"
OPEN_RUNS = "trees"
CLUSTER = "cluster"

# Of the nodes of a cluster on this machine.
CLUSTER_RECORD, CLUSTER_TOKEN, CLUSTER_LOCK = "cluster.json", "token", "cluster.lock"
CLUSTER_WORKERS = "workers"

# Of a workspace.
TRUST = "trust.json"
CHECKOUT_ID = "checkout-id"
LEDGER, LEDGER_SUMS, LEDGER_LOCK = "spending.jsonl", "spending.sums.json", "spending.lock"
RESCUE_INDEX = "rescue-index"
RUNS, PLANS, PLANNING, WORKTREES = "runs", "plans", "planning", "worktrees"
CLONES, SANDBOX, WORKERS = "clones", "sandbox", "workers"
HUB = "hub.git"
STREAMS, MERGES = "streams", "merges"

# Of the sandbox of a workspace.
AGENT_HOME, CHECK_HOME, AGENT_OBJECTS, AGENT_GIT = "agent-home", "check-home", "objects.git", "agent-git"
SANDBOX_SETUP = "setup.json"
CHECKS_OUTSIDE = "checks-outside"

# Of a plan.
RUN_LOCK, EDIT_LOCK = "run.lock", "edit.lock"
LAST_RUN = "last-run"
CLONE = "clone.json"
SIDECAR = "beside.json"
INDEX, AUDIT_INDEX = "index", "audit-index"
ORDERS, NOTES, ADDITIONS, RETRIES, ANSWER_INBOX, LEARNING_INBOX, DECISIONS, SKIPS = (
    "control", "notes", "additions", "retries", "answers", "learnings", "decisions", "skips",
)  # fmt: skip
ANSWERS = "answers.json"
LEARNINGS = "learnings.md"
IMPORTS = "imported.json"
ACCEPTANCE, EXAM = "acceptance", "exam.json"
BASELINE, TESTS, MADE_BY_CHECKS = "baseline.json", "tests.json", "made-by-checks.json"
PROOF_PLACE, VERIFIED, REPORTS = "proof-place.json", "verified.json", "reports"

# Of a run. A call of the planning agent has a folder of the same kind.
JOURNAL = "events.jsonl"
RAW, CHECK_OUTPUTS, HOOK_SESSIONS, RULES, MEMORY = "raw", "checks", "hooks", "rules", "memory"
CLIENTS = "clients"
PLAN_AFTER, RULES_BEFORE = "plan.after", "rules.before"
ALIVE, AGENTS_ENDED = "alive", "agents-ended"
OUTPUT_LOG, INTERNAL_ERROR, GIT_TRACE = "output.log", "internal-error.log", "git-trace"
NETWORK_LOG = "network.jsonl"
TRACE = "trace.json"
RELAY_LOG = "relay.log"

# Of the hooks of one session.
PLAN_BEFORE, ANSWERED = policy.PLAN_BEFORE, policy.ANSWERED
CONTEXT_TOKENS, CONTEXT_WINDOW = policy.CONTEXT_TOKENS, policy.CONTEXT_WINDOW
POLICY, RECORDS, CLIENT_SETTINGS = "policy.json", "records.jsonl", "settings.json"

GIT_LOCK = "ralph-run"
"""In the folder of a git repository: held while a run works in its tree."""


class File(Struct, frozen=True):
    path: str
    """Relative to the state folder; capitals stand for a name. A folder ends with a `/`."""
    writer: str
    what: str


_PLAN = f"WORKSPACE/{PLANS}/PLAN"
_RUN = f"WORKSPACE/{RUNS}/RUN"
_SESSION = f"{_RUN}/{HOOK_SESSIONS}/ITERATION"

FILES = tuple(
    File(*row)
    for row in (
        (f"{ERROR_LOGS}/", "cli", "tracebacks of internal errors"),
        (f"{HOOK_INSTALLS}/", "session", "what `ralph hooks install` changed, for `uninstall`"),
        (f"{OPEN_RUNS}/", "state", "the run that has not ended, by working tree"),
        (f"{CLUSTER}/{CLUSTER_RECORD}", "run", "the nodes of a Ray cluster on this machine, with their processes"),
        (f"{CLUSTER}/{CLUSTER_TOKEN}", "run", "the token of that cluster"),
        (f"{CLUSTER}/{CLUSTER_LOCK}", "run", "held while nodes are started and ended"),
        (f"{CLUSTER}/{CLUSTER_WORKERS}/WORKER/", "run", "the state folder of a worker of the cluster, with its clone"),
        (f"{CLUSTER}/NODE.log", "run", "the output of a node"),
        (f"WORKSPACE/{TRUST}", "workspace", "the commands that the user trusts"),
        (f"WORKSPACE/{CHECKOUT_ID}", "proof", "a random number that names the folder of the proof checkout"),
        (f"WORKSPACE/{LEDGER}", "journal", "what every session of every run has cost"),
        (f"WORKSPACE/{LEDGER_SUMS}", "journal", "sums over the ledger, so that it need not be read in full"),
        (f"WORKSPACE/{LEDGER_LOCK}", "journal", "held while the ledger is written"),
        (f"WORKSPACE/{RESCUE_INDEX}", "cli", "the index with which `ralph rescue` reapplies work"),
        (f"WORKSPACE/{PLANNING}/", "planning", "drafts, and journals and raw output of the planning agent"),
        (f"WORKSPACE/{WORKTREES}/RUN/", "run", "the git worktree of a run"),
        (f"WORKSPACE/{STREAMS}/", "run", "what each stream was made from"),
        (f"WORKSPACE/{MERGES}/STREAM/", "run", "the merged tree of a stream, while its checks run"),
        (f"WORKSPACE/{CLONES}/PLAN/", "run", "the clone in which agents work, a git worktree for the loop"),
        (f"WORKSPACE/{WORKERS}/NUMBER/", "run", "the state folder of a worker, with its clone"),
        (f"WORKSPACE/{HUB}/", "run", "the bare repository through which machines of a cluster exchange work"),
        (f"WORKSPACE/{SANDBOX}/{AGENT_HOME}/", "run", "the home folder of agents in a sandbox"),
        (f"WORKSPACE/{SANDBOX}/{CHECK_HOME}/", "run", "the home folder of checks in a sandbox"),
        (f"WORKSPACE/{SANDBOX}/{AGENT_OBJECTS}/", "run", "the history that agents in a sandbox can read"),
        (f"WORKSPACE/{SANDBOX}/{AGENT_GIT}/PLAN/", "run", "the repository that agents in a sandbox write to"),
        (f"WORKSPACE/{SANDBOX}/{SANDBOX_SETUP}", "run", "what the sandbox was set up with"),
        (f"WORKSPACE/{SANDBOX}/{CHECKS_OUTSIDE}", "run", "the check that could not run inside before any agent worked"),
        (f"{_PLAN}/{RUN_LOCK}", "run", "held by a run, and by commands that must not overlap one"),
        (f"{_PLAN}/{EDIT_LOCK}", "state", "held by a command while it changes the plan"),
        (f"{_PLAN}/{LAST_RUN}", "run", "the ID of the last run"),
        (f"{_PLAN}/{CLONE}", "run", "where the clone is, while it has work that the checkout has not"),
        (f"{_PLAN}/{SIDECAR}", "plans", "what the plan file cannot say about its stories"),
        (f"{_PLAN}/{INDEX}", "run", "the private index of candidates"),
        (f"{_PLAN}/{AUDIT_INDEX}", "proof", "the private index of `ralph verify` and `ralph proof audit`"),
        (f"{_PLAN}/{ORDERS}/", "workspace", "requests to pause, resume or stop the run"),
        (f"{_PLAN}/{NOTES}/", "workspace", "the user's notes for the next prompt"),
        (f"{_PLAN}/{ADDITIONS}/", "planning", "stories of `ralph add` that a run takes in"),
        (f"{_PLAN}/{RETRIES}/", "workspace", "stories that a run reopens"),
        (f"{_PLAN}/{ANSWER_INBOX}/", "workspace", "stories that a run reopens because they were answered"),
        (f"{_PLAN}/{DECISIONS}/", "workspace", "findings that a run rejects or confirms for the user"),
        (f"{_PLAN}/{SKIPS}/", "workspace", "stories that a run sets aside for the user"),
        (f"{_PLAN}/{LEARNING_INBOX}/", "memory", "learnings that a run takes in"),
        (f"{_PLAN}/{ANSWERS}", "workspace", "the user's answers, for prompts"),
        (f"{_PLAN}/{LEARNINGS}", "journal", "learnings, in a layout that has no place for them"),
        (f"{_PLAN}/{IMPORTS}", "importing", "which stories were imported, and from where"),
        (f"{_PLAN}/{ACCEPTANCE}/", "proof", "acceptance tests, one record per story"),
        (f"{_PLAN}/{EXAM}", "proof", "how many exams there were"),
        (f"{_PLAN}/{BASELINE}", "proof", "which checks passed on the last checkpoint"),
        (f"{_PLAN}/{TESTS}", "proof", "the tests known at the last checkpoint"),
        (f"{_PLAN}/{MADE_BY_CHECKS}", "proof", "untracked files that checks create"),
        (f"{_PLAN}/{PROOF_PLACE}", "proof", "where proof ran last, and why"),
        (f"{_PLAN}/{VERIFIED}", "proof", "the last passes of `ralph verify`"),
        (f"{_PLAN}/{REPORTS}/", "proof", "test reports of checks"),
        (f"{_PLAN}/{CHECK_OUTPUTS}/", "proof", "the output of the checks of `ralph verify`"),
        (f"{_RUN}/{JOURNAL}", "journal", "the journal: every view of a run is computed from it"),
        (f"{_RUN}/{RAW}/", "engine", "what each agent printed"),
        (f"{_RUN}/{CHECK_OUTPUTS}/", "proof", "the output of checks"),
        (f"{_RUN}/{PLAN_BEFORE}", "engine", "the plan before the iteration"),
        (f"{_RUN}/{PLAN_AFTER}", "engine", "the plan that the loop is about to write"),
        (f"{_RUN}/{RULES_BEFORE}", "run", "the watched files before the iteration, while the run lives"),
        (f"{_RUN}/{RULES}/", "run", "watched files as an agent left them"),
        (f"{_RUN}/{MEMORY}/", "run", "logs and learnings as they were before an agent changed them"),
        (f"{_RUN}/{ALIVE}", "workspace", "written every other second while the run lives"),
        (f"{_RUN}/{AGENTS_ENDED}", "run", "written when the processes of a killed run were ended"),
        (f"{_RUN}/{CLIENTS}/ITERATION-STEP/…", "engine", "the private configuration of an agent's process"),
        (f"{_RUN}/{GIT_TRACE}", "host", "the git commands of the agent"),
        (f"{_RUN}/{NETWORK_LOG}", "sandbox", "every decision of the sandbox's proxy"),
        (f"{_RUN}/{TRACE}", "traces", "how much of the run's trace the receiver has"),
        (f"{_RUN}/{RELAY_LOG}", "run", "what Ray printed in the process that talks to a cluster"),
        (f"{_RUN}/{OUTPUT_LOG}", "cli", "the output of a detached run"),
        (f"{_RUN}/{INTERNAL_ERROR}", "engine", "the traceback of an iteration that failed by a bug"),
        (f"{_SESSION}/{POLICY}", "session", "the rules of one session, for its hooks"),
        (f"{_SESSION}/{CLIENT_SETTINGS}", "session", "the client settings that call the hooks"),
        (f"{_SESSION}/{RECORDS}", "hooks", "what the hooks answered"),
        (f"{_SESSION}/{PLAN_BEFORE}", "session", "the plan before the session, for the Stop hook"),
        (f"{_SESSION}/{ANSWERED}", "hooks", "exists once the session has written its request file"),
        (f"{_SESSION}/{CONTEXT_TOKENS}", "engine", "how many tokens the session uses"),
        (f"{_SESSION}/{CONTEXT_WINDOW}", "engine", "how many tokens the model has"),
    )
)
