"""What the guard speaks against, one entry per category. `docs/guard.md` has the same table; a test compares them."""


class Category:
    __slots__ = ("advice", "id", "meaning", "severity")

    def __init__(self, id: str, severity: str, meaning: str, advice: str) -> None:
        self.id = id
        self.severity = severity
        self.meaning = meaning
        self.advice = advice


SEVERITIES = ("critical", "high", "medium")

TABLE = (
    Category(
        "destruction",
        "critical",
        "deletes or overwrites files outside of the workspace, the workspace itself, or its .git folder",
        "Name single files or folders inside of the workspace, or work in a folder of your own under /tmp.",
    ),
    Category(
        "outside",
        "high",
        "creates files or folders outside of the workspace, or adds to them",
        "Work inside of the workspace or under /tmp; a person can allow a folder with the setting allow_paths.",
    ),
    Category(
        "git-history",
        "critical",
        "destroys commits, branches, stashes, or changes that are not committed",
        "Undo your own edits file by file (`git restore FILE`), or make a new commit; leave the rest as it is.",
    ),
    Category(
        "git-push",
        "high",
        "sends commits to another repository",
        "Commit only. The loop, or a person, pushes what was proven.",
    ),
    Category(
        "git-merge",
        "high",
        "brings work into main or master",
        "Stay on the branch of this plan. A person merges.",
    ),
    Category(
        "privilege",
        "critical",
        "takes more rights than the agent was given",
        "Do it without other rights; if it cannot be done, say in your notes what a person should set up.",
    ),
    Category(
        "devices",
        "critical",
        "writes to disks, devices, partitions or filesystems",
        "Use an ordinary file in the workspace.",
    ),
    Category(
        "permissions",
        "high",
        "changes rights or owners of whole trees, or of files outside of the workspace",
        "Change the mode of the one file that needs it, for example `chmod +x script.sh`.",
    ),
    Category(
        "kill",
        "high",
        "ends processes that are not the agent's own",
        "End what you started, by its number or by a name that only it has.",
    ),
    Category("shutdown", "critical", "stops or restarts the machine", "Leave the machine running."),
    Category("fork-bomb", "critical", "starts processes without end", "Start what you need, a fixed number of times."),
    Category(
        "remote-code",
        "critical",
        "runs what a server sends, unseen",
        "Download it to a file, read it, and say in your notes if a person should install it.",
    ),
    Category(
        "exfiltration",
        "critical",
        "shows or sends keys, credentials or the environment",
        "Leave secrets where they are; a program that needs one reads it itself.",
    ),
    Category(
        "remote-shell",
        "critical",
        "opens a shell to or from another machine",
        "Work in this workspace only.",
    ),
    Category(
        "publishing",
        "high",
        "publishes a package, an image or a release, or deploys",
        "Build it, or use the tool's dry run. A person publishes.",
    ),
    Category(
        "cloud",
        "critical",
        "deletes or changes cloud resources",
        "Look at them (list, describe, plan), and say in your notes what should change.",
    ),
    Category(
        "cluster",
        "critical",
        "deletes or stops what runs in a cluster",
        "Look at it (get, describe, logs, --dry-run), and say in your notes what should change.",
    ),
    Category(
        "containers",
        "high",
        "removes containers, images or volumes wholesale",
        "Remove the one container that you started, by its name.",
    ),
    Category(
        "databases",
        "critical",
        "drops, empties or overwrites a database",
        "Use a test database, and statements that name what they change.",
    ),
    Category(
        "persistence",
        "critical",
        "outlives the session: cron, services, shell start-up files, ssh keys",
        "Run what you need now, in this session.",
    ),
    Category(
        "system",
        "high",
        "changes the system: packages, users, network, kernel, clock",
        "Work with what is installed, or install into the workspace.",
    ),
    Category(
        "tampering",
        "critical",
        "changes Ralph, its hooks or state, the agent's settings, or git's hooks",
        "Leave them as they are, and say in your notes what should change.",
    ),
    Category(
        "audit",
        "high",
        "wipes histories or logs",
        "Leave histories and logs as they are.",
    ),
    Category(
        "opaque",
        "high",
        "runs a command that is hidden from reading: decoded, decrypted, computed",
        "Write the command out.",
    ),
    Category(
        "unreadable",
        "medium",
        "has a risky word in it and cannot be read as a shell command",
        "Say it in a simpler way, one command at a time.",
    ),
    Category(
        "project",
        "medium",
        "is denied by the project's own rules",
        "Find another way, or say in your notes why it is needed.",
    ),
)

BY_ID = {category.id: category for category in TABLE}
