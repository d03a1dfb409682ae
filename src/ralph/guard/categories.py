"""What the guard denies, one entry per category. `docs/guard.md` has the same table; a test compares them."""


class Category:
    __slots__ = ("advice", "id", "meaning", "severity")

    def __init__(self, id: str, severity: str, meaning: str, advice: str) -> None:
        self.id = id
        self.severity = severity
        self.meaning = meaning
        self.advice = advice


SEVERITIES = ("critical", "high", "medium")
_TEXT = """
destruction critical deletes or overwrites files outside the workspace, the workspace itself, or its .git folder
    Name single files or folders inside the workspace, or create your own folder under /tmp.
outside high creates files or folders outside the workspace, or adds to them
    Work inside the workspace or under /tmp; the user can allow a folder with the setting allow_paths.
git-history critical destroys commits, branches, stashes or uncommitted changes
    Undo your own edits file by file (`git restore FILE`), or make a new commit; leave the rest unchanged.
git-push high pushes commits to another repository
    Only commit. The loop or the user pushes verified work.
git-merge high merges into main or master
    Stay on the branch of this plan. The user merges.
privilege critical gains privileges the agent was not given
    Do it without extra privileges; if that is not possible, note what the user should set up.
devices critical writes to disks, devices, partitions or filesystems
    Use an ordinary file in the workspace.
permissions high changes permissions or owners of whole trees, or of files outside the workspace
    Change the mode of the one file that needs it, for example `chmod +x script.sh`.
kill high kills processes the agent did not start
    Kill only what you started, by its PID or by a unique name.
shutdown critical stops or restarts the machine
    Leave the machine running.
fork-bomb critical starts an unlimited number of processes
    Start a fixed number of processes.
remote-code critical runs downloaded code without inspecting it
    Download it to a file and read it; note if the user should install it.
exfiltration critical prints or sends keys, credentials or the environment
    Leave secrets where they are; programs that need them read them.
remote-shell critical opens a shell to or from another machine
    Work in this workspace only.
publishing high publishes a package, an image or a release, or deploys
    Build it, or use the tool's dry run. The user publishes.
cloud critical deletes or changes cloud resources
    Only inspect them (list, describe, plan), and note what should change.
cluster critical deletes or stops workloads in a cluster
    Only inspect it (get, describe, logs, --dry-run), and note what should change.
containers high removes containers, images or volumes in bulk
    Remove only the container you started, by name.
databases critical drops, empties or overwrites a database
    Use a test database, and limit each statement to the rows it should change.
persistence critical persists after the session: cron, services, shell startup files, SSH keys
    Run what you need now, in this session.
system high changes the system: packages, users, network, kernel, clock
    Work with what is installed, or install into the workspace.
tampering critical changes Ralph, its hooks or state, the agent's settings, or git's hooks
    Leave them unchanged, and note what should change.
audit high erases history files or logs
    Leave history files and logs unchanged.
opaque high runs a command that is hidden: decoded, decrypted, computed
    Write the command out.
unreadable medium contains a risky word and cannot be parsed as a shell command
    Write it more simply, one command at a time.
project medium is denied by the project's own rules
    Find another way, or note why it is needed.
"""
"""Two lines each: the category, its severity and what a denied command does; what to do instead."""


def _read(lines: list[str]) -> list[Category]:
    heads = [head.split(" ", 2) for head in lines[::2]]
    return [
        Category(head[0], head[1], head[2], advice.strip()) for head, advice in zip(heads, lines[1::2], strict=True)
    ]


TABLE = _read(_TEXT.strip().split("\n"))
BY_ID = {category.id: category for category in TABLE}
