"""The commands: what is typed, the function that does it, and a summary. Nothing is imported before a call.

A command of two words is an action of a family: `ralph plan import`. `ralph plan` alone does the family's usual work.
"""

DAILY = {
    "init": "",
    "plan": "",
    "plan import": "",
    "task": "",
    "check": "",
    "run": "",
    "watch, ui": "show a run live; `ui` takes the whole terminal",
    "serve": "",
    "status": "",
    "stop, pause": "stop or pause a run after the current iteration",
    "answer, note": "answer a question, or leave a note for the next session",
    "retry": "",
    "explain": "",
    "report, log": "show what a run did, or its events one by one",
    "pr": "",
}
"""The commands that a bare `ralph` lists, in order of use, with a summary of those that share a line."""

# Heading: module of `cli.syntax`. Then: command, module of `cli` and function, summary, older names of the command.
_TABLE = """
Plan the work: plan
  init               init                       set up Ralph in a project and start a plan
  plan               planning:plan              plan with an agent, from an idea or from requirements
  plan import        plan_files:import_plan     import issues, checklists, beads or another tool's plan  import
  plan export        plan_files:export_plan     write the plan in another layout  export
  plan convert       plan_files:convert_plan    convert the plan to another layout  convert
  plan archive       archive                    archive a plan, list archives, restore one  archive
  plan sync          plan_files:compare_beads   compare a spec with its beads  verify-sync
  add                planning:add               turn a request into new stories, with an agent  plan add
  fix                planning:fix               turn a bug report into a story with a failing check  plan fix
  task               task                       list, show, add and edit stories
  check              check                      check that the plan is ready to run  plan check
Run: run
  run                run                        work through the plan until every story is done
  watch              watch                      show a run live, from any terminal
  pause              control:pause              pause a run after the current iteration
  resume             control:resume             resume a paused run
  stop               control:stop               stop a run after the current iteration, or now
  note               control:leave_note         leave a note for the next session
  retry              control:retry_stories      give failed stories another chance
  answer             control:answer_question    list open questions, or answer one
Streams: stream
  stream             stream:show_list           run several plans at once, each in its own worktree
  stream new         stream:create              create a stream for a plan
  stream list        stream:show_list           list the streams, their states and progress
  stream status      stream:show_status         show one stream in full
  stream build       stream:build               run the plan of a stream
  stream stop        stream:stop                stop the run of a stream
  stream merge       stream:merge               prove and merge a stream into the current branch
  stream remove      stream:remove              remove a merged stream: worktree, branch and lock
See what happened: history
  status             status                     show the stories, their states and the last run
  report             report                     show what a run did: stories, commits, cost, questions  runs report
  pr                 pr                         open a pull request with the report of a run as its text
  record             record                     make an animated picture of a run: SVG, asciicast or GIF
  log                log                        show the events of a run  runs log
  ui                 ui                         show a run on the whole terminal, and act on it
  serve              serve                      show the runs of this machine in a browser
  explain            explain:explain_run        explain why a run ended and what to do next  runs explain
  explain circuit    explain:show_circuit       show the circuit breakers of a run  circuit, runs circuit
  explain route      explain:show_route         show which agent and model would get a story  route
  explain prompt     explain:show_prompt        print the prompt of the next session  prompt
  explain schedule   explain_schedule:show_schedule  show which stories would start together
  runs               runs:list_runs             list the runs of this workspace  runs list
  runs cost          cost                       show what runs cost, and a forecast for the rest  cost
  runs stats         runs:show_stats            show statistics: attempts, verdicts, reviews  stats
  runs replay        runs:replay_run            replay the decisions of a recorded run  replay
  runs trace         traces:send_trace          send the trace of a recorded run to an OpenTelemetry receiver
Verify: proof
  verify             proof:verify               run the checks now
  proof              proof:show_proof           show why a story counts as done
  proof audit        proof:audit_stories        re-verify every finished story against its proof  audit
  proof exam         proof:exam                 have a session write end-to-end tests for a finished plan  exam
  rescue             rescue                     list, show, restore or drop rejected work
Agents: agents
  agents             agents:list_agents         list the agents: installed, logged in, guarded  agents list
  agents show        agents:show_agent          show what an agent needs and can do
  agents test        agents:test_agent          run the conformance suite on an agent
  bench              bench:compare              compare agents on a small project
  bench review       bench_review:compare       measure how many known defects a reviewer finds
Sandbox: sandbox
  sandbox            sandbox:show_status        show the sandbox: which one, why, its hosts and limits  sandbox status
  sandbox shell      sandbox:open_shell         open a terminal in the sandbox, as the agent sees it
  sandbox exec       sandbox:run_command        run one command in the sandbox
  sandbox log        sandbox:show_log           show which hosts a run reached and which were refused
  sandbox test       sandbox_test:try_escapes   try to escape from each sandbox that works here
  sandbox reset      sandbox:remove_sandbox     remove the clone, the home folder and the rest of the sandbox
Cluster: cluster
  cluster            cluster:show_status        show the nodes of the Ray cluster and their slots  cluster status
  cluster up         cluster:start_nodes        start a Ray cluster on this machine
  cluster join       cluster:join_cluster       add this machine to a Ray cluster
  cluster down       cluster:end_nodes          end the nodes on this machine
Memory: memory
  memory             memory:show_learnings      list, search and record what sessions learned  learnings, memory list
  memory add         memory:add_learning        record something for later sessions  learn
  memory compact     memory:compact_learnings   summarise the learnings with an agent  compact
  memory budget      memory:show_budget         show how many tokens every session starts with  budget
Setup: setup
  config             config:show_settings       show and change settings  config show
  config get         config:get                 print one setting
  config set         config:change              set a key in a config file
  config unset       config:change              remove a key from a config file
  config schema      config:schema              print a JSON Schema of the config files
  config paths       config:paths               print the files and folders Ralph uses  paths
  config completion  help:completion            print a completion script for bash, zsh, fish or PowerShell  completion
  config man         help:man                   write the man pages
  config migrate     migrate                    open what an earlier version left, and change what must change  migrate
  trust              trust                      review and trust the commands of a workspace
  doctor             doctor:check_machine       check this machine
  doctor preflight   doctor:check_run           check everything a run needs, without starting one  preflight
  doctor notify      doctor:test_notifications  test the notifications  notify test, notify
  hooks              hooks:status               install and inspect the Claude Code hooks  hooks status
  hooks install      hooks:install              add the hooks to a settings file
  hooks uninstall    hooks:uninstall            remove the hooks from a settings file
  hooks at-stop      hooks:at_stop              used by the Stop hook: what keeps the agent from stopping
  hooks plugin       hooks:plugin               write a Claude Code plugin  plugin write, plugin
  guard              guard                      show whether the agent may run a command
  detect             detect                     detect test results and usage limits in text
  help               help:show_help             list the commands, or explain one
Hidden: run
  build              run:build                  run one numbered PRD: `ralph build 10 --prd 1`
"""
_HIDDEN = "Hidden"


class Entry:
    """A plain class: importing NamedTuple or dataclass would cost more than the rest of `ralph --version`."""

    __slots__ = ("group", "names", "run", "summary", "syntax")

    def __init__(self, group: str, syntax: str, run: str, summary: str, names: str) -> None:
        self.group = group
        self.syntax = syntax
        self.run = run
        self.summary = summary
        self.names = names.split(", ") if names else []


def entries() -> dict[str, Entry]:
    """Every command and action, by what is typed."""
    found, group, syntax = {}, "", ""
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            command, run, summary, names = [*(cell.strip() for cell in line.split("  ") if cell), ""][:4]
            found[command] = Entry(group, syntax, run, summary, names)
        else:
            group, _, syntax = line.partition(": ")
    return found


def shown() -> dict[str, Entry]:
    """The commands of one word, without those that only repeat another one."""
    return {name: entry for name, entry in entries().items() if " " not in name and entry.group != _HIDDEN}


def actions(family: str) -> dict[str, Entry]:
    """The actions of a family, by their second word."""
    return {name.split()[1]: entry for name, entry in entries().items() if name.startswith(f"{family} ")}


def older_names() -> dict[str, str]:
    """Another name → the command."""
    return {name: command for command, entry in entries().items() for name in entry.names}


def resolve(argv: list[str]) -> tuple[str, list[str]]:
    """The command in a command line, by any of its names, and the arguments that follow. Empty if it is unknown."""
    known, older = entries(), older_names()
    for count in (2, 1):
        words = " ".join(argv[:count])
        if len(argv) >= count and (words in known or words in older):
            return (words if words in known else older[words]), argv[count:]
    return "", argv
