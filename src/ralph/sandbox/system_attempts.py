"""Escapes from a sandbox through other processes, the kernel and its limits. See `attempts`."""

from __future__ import annotations

from ralph.sandbox.attempts import Attempt, Control, Group
from ralph.sandbox.wall import Quota

_SURFACE = "an attack surface that this backend leaves to its own filter"
_OWN_FILTER = ("bwrap", "docker", "podman")

PROCESSES = (
    Attempt(
        "see-processes",
        "see the processes of the machine",
        Group.PROCESSES,
        """
        for path in glob.glob(S["processes"] + "/cmdline"):
            try:
                words = open(path, "rb").read().split(b"\\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", S["sleep"].encode()]:
                escaped(path)
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "environment",
        "read the environment of a process of the machine",
        Group.PROCESSES,
        """
        for path in glob.glob(S["processes"] + "/environ"):
            try:
                if b"RALPH_CANARY=" + TOKEN.encode() in open(path, "rb").read():
                    escaped(path)
            except OSError:
                pass
        """,
        Control.STAND_IN,
    ),
    Attempt(
        "signal",
        "end a process of the machine",
        Group.PROCESSES,
        """
        os.kill(S["pid"], 15)
        time.sleep(0.1)
        """,
    ),
    Attempt(
        "ptrace",
        "trace a process of the machine",
        Group.PROCESSES,
        """
        if LIBC.ptrace(16, S["pid"], 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.waitpid(S["pid"], 0x40000000)
        LIBC.ptrace(17, S["pid"], 0, 0)
        escaped("traced")
        """,
    ),
    Attempt(
        "memory",
        "open the memory of a process of the machine",
        Group.PROCESSES,
        """
        link = os.readlink(f"/proc/{S['pid']}/exe")
        open(f"/proc/{S['pid']}/mem", "rb").close()
        end(0 if "sleep" in link or "coreutils" in link or "busybox" in link else 10, link)
        """,
    ),
    Attempt(
        "namespaces",
        "share a namespace with the machine",
        Group.PROCESSES,
        """
        same = [name for name, link in S["namespaces"].items() if os.readlink("/proc/self/ns/" + name) == link]
        end(0 if same else 10, "shared: " + (", ".join(same) or "none"))
        """,
        only=("bwrap",),
        why_only="a container engine may keep some",
    ),
    Attempt(
        "daemon",
        "leave a process behind that outlives the sandbox",
        Group.PROCESSES,
        """
        if os.fork():
            time.sleep(0.3)
            end(10, "it ended with the sandbox")
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (0, 1, 2):
            os.close(number)
        with open(S["clone"] + "/bare-daemon", "w") as file:
            file.write(str(os.getpid()))
        until = time.monotonic() + 3
        while time.monotonic() < until:
            with open(S["clone"] + "/beat", "a") as file:
                file.write(".")
            time.sleep(0.01)
        os._exit(0)
        """,
    ),
    Attempt(
        "descriptors",
        "use a descriptor that was inherited",
        Group.PROCESSES,
        """
        kept = []
        for name in os.listdir("/proc/self/fd"):
            try:
                link = os.readlink("/proc/self/fd/" + name)
            except OSError:
                continue
            if int(name) > 2 and "/proc/" not in link:
                kept.append(link)
        end(0 if kept else 10, ", ".join(kept) or "none")
        """,
        Control.NONE,
    ),
    Attempt(
        "terminal",
        "type into the terminal (TIOCSTI)",
        Group.PROCESSES,
        """
        import fcntl, termios
        leader, follower = os.openpty()
        if os.fork() == 0:
            os.setsid()
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
            try:
                fcntl.ioctl(follower, termios.TIOCSTI, b"x")
            except OSError as error:
                os._exit(10)
            os._exit(0)
        end(os.waitstatus_to_exitcode(os.wait()[1]), "the system call is refused")
        """,
        only=_OWN_FILTER,
        why_only="this backend has no terminal of the machine",
    ),
)

KERNEL = (
    Attempt(
        "capabilities",
        "have a capability, or a way to get one",
        Group.KERNEL,
        """
        lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
        names = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(lines[name], 16)]
        end(0 if names else 10, ", ".join(names) or "none")
        """,
        only=("bwrap", "docker", "podman"),
        why_only="this backend keeps capabilities of its own user namespace",
    ),
    Attempt(
        "setuid-program",
        "gain privileges from a set-user-ID program",
        Group.KERNEL,
        'end(10 if LIBC.prctl(39, 0, 0, 0, 0) == 1 else 0, "no_new_privs")',
    ),
    Attempt("user-namespace", "become root in a new user namespace", Group.KERNEL, 'reach("unshare", 0x10000000)'),
    Attempt(
        "clone-namespace",
        "start a process in a new user namespace",
        Group.KERNEL,
        """
        result, _ = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
        if result == 0:
            os._exit(0)
        escaped("started")
        """,
    ),
    Attempt(
        "mount",
        "mount a file system",
        Group.KERNEL,
        """
        folder = S["clone"] + "/mount"
        os.mkdir(folder)
        if LIBC.mount(b"none", folder.encode(), b"tmpfs", 0, None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        LIBC.umount2(folder.encode(), 2)
        escaped(folder)
        """,
    ),
    Attempt("new-mount", "mount with the new system calls", Group.KERNEL, 'reach("fsopen", b"tmpfs", 0)'),
    Attempt("chroot", "break out of a chroot", Group.KERNEL, 'os.chroot(S["clone"]); escaped("chroot")'),
    Attempt(
        "device-node",
        "create a node of the machine's disk",
        Group.KERNEL,
        """
        import stat
        path = S["clone"] + "/node"
        os.mknod(path, 0o600 | stat.S_IFBLK, os.stat(S["clone"]).st_dev)
        open(path, "rb").close()
        escaped(path)
        """,
    ),
    Attempt(
        "devices",
        "open disks, memory and the kernel's log in /dev",
        Group.KERNEL,
        """
        paths = [p for kind in ("sd?", "vd?", "nvme?n?", "mem", "kmem", "port", "kmsg", "kvm", "fuse", "dm-?", "loop?")
                 for p in glob.glob("/dev/" + kind)]
        def opens(path):
            open(path, "rb", 0).close()
            escaped(path)
        each(opens, *paths)
        """,
    ),
    Attempt(
        "core-pattern",
        "set the program that the kernel starts for core dumps",
        Group.KERNEL,
        'open("/proc/sys/kernel/core_pattern", "r+b", 0).close(); escaped("writable")',
    ),
    Attempt(
        "sysctl",
        "change settings of the kernel",
        Group.KERNEL,
        """
        def opens(path):
            os.close(os.open(path, os.O_WRONLY))
            escaped(path)
        names = ("kernel/modprobe", "kernel/hotplug", "vm/drop_caches", "fs/suid_dumpable", "kernel/panic")
        each(opens, *("/proc/sys/" + name for name in names), "/proc/sysrq-trigger")
        """,
    ),
    Attempt(
        "sys",
        "write to /sys",
        Group.KERNEL,
        """
        def opens(path):
            os.close(os.open(path, os.O_WRONLY))
            escaped(path)
        each(opens, "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled")
        """,
    ),
    Attempt(
        "cgroups",
        "leave the control group",
        Group.KERNEL,
        """
        def opens(path):
            os.close(os.open(path, os.O_WRONLY))
            escaped(path)
        each(opens, *glob.glob("/sys/fs/cgroup/cgroup.procs"), *glob.glob("/sys/fs/cgroup/*/cgroup.procs"))
        """,
    ),
    Attempt("module", "load a kernel module", Group.KERNEL, 'reach("finit_module", -1, b"", 0)'),
    Attempt("kexec", "start another kernel", Group.KERNEL, 'reach("kexec_load", 0, 1 << 20, 0, 1 << 30)'),
    Attempt("keyring", "read the session's keys", Group.KERNEL, 'reach("keyctl", 0, -3, 0)'),
    Attempt(
        "add-key",
        "leave a key for other processes of the user",
        Group.KERNEL,
        'call("keyctl", 1, 0); reach("add_key", b"user", b"ralph", b"x", 1, -3)',
    ),
    Attempt(
        "file-handle",
        "open a file by its handle",
        Group.KERNEL,
        'reach("open_by_handle_at", -100, struct.pack("=Ii8s", 8, 1, b"12345678"), 0)',
    ),
    Attempt("bpf", "use bpf", Group.KERNEL, 'reach("bpf", 0, b"\\0" * 128, 128)', only=_OWN_FILTER, why_only=_SURFACE),
    Attempt(
        "perf",
        "use perf_event_open",
        Group.KERNEL,
        'reach("perf_event_open", struct.pack("=II112x", 1, 120), 0, -1, -1, 0)',
        only=_OWN_FILTER,
        why_only=_SURFACE,
    ),
    Attempt(
        "io-uring",
        "use io_uring",
        Group.KERNEL,
        'reach("io_uring_setup", 1, ctypes.create_string_buffer(120))',
        only=_OWN_FILTER,
        why_only=_SURFACE,
    ),
    Attempt(
        "userfaultfd", "use userfaultfd", Group.KERNEL, 'reach("userfaultfd", 1)', only=_OWN_FILTER, why_only=_SURFACE
    ),
    Attempt(
        "kernel-crypto",
        "open a socket of the kernel's crypto interface",
        Group.KERNEL,
        'socket.socket(38, 5); escaped("opened")',
        only=_OWN_FILTER,
        why_only=_SURFACE,
    ),
    Attempt(
        "other-architecture",
        "get round the filter with a 32-bit system call",
        Group.KERNEL,
        """
        import mmap
        if os.uname().machine != "x86_64":
            raise OSError("only on x86_64")
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("53b814000000cd805bc3"))  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        result = ctypes.CFUNCTYPE(ctypes.c_int)(start)()
        end(0 if result > 0 else 10, str(result))
        """,
        only=_OWN_FILTER,
        why_only=_SURFACE,
    ),
)

LIMITS = (
    Attempt(
        "fork-bomb",
        "start more processes than allowed",
        Group.LIMITS,
        """
        children = []
        try:
            for _ in range(200):
                child = os.fork()
                if child == 0:
                    time.sleep(5)
                    os._exit(0)
                children.append(child)
        except OSError as error:
            end(10, f"{error} after {len(children)}")
        finally:
            for child in children:
                os.kill(child, 9)
        escaped("started 200")
        """,
        quota=Quota(processes=50),
    ),
    Attempt(
        "fill-temporary",
        "write more to /tmp than allowed",
        Group.LIMITS,
        """
        names = [f"/tmp/ralph-escape-{TOKEN}-{number}" for number in range(4)]
        try:
            for name in names:
                with open(name, "wb", 0) as file:
                    file.write(bytes(3_000_000))
                if os.path.getsize(name) < 3_000_000:
                    end(10, "no space left")
        finally:
            for name in names:
                if os.path.exists(name):
                    os.unlink(name)
        escaped("12 MB")
        """,
        quota=Quota(disk_mb=8),
        only=("bwrap", "docker", "podman"),
        why_only="/tmp is not limited",
    ),
    Attempt(
        "large-file",
        "write a file that is larger than allowed",
        Group.LIMITS,
        """
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open(S["clone"] + "/large", "wb", 0) as file:
            for _ in range(6):
                if file.write(bytes(2_000_000)) < 2_000_000:
                    end(10, "cut off")
        escaped("12 MB")
        """,
        quota=Quota(disk_mb=8),
    ),
    Attempt(
        "memory-limit",
        "take more memory than allowed",
        Group.LIMITS,
        'escaped(str(len(bytearray(b"x") * 400_000_000)))',
        quota=Quota(memory_mb=200),
    ),
    Attempt(
        "processor-time",
        "take more processor time than allowed",
        Group.LIMITS,
        """
        while time.process_time() < 2.2:
            pass
        escaped("2.2 seconds")
        """,
        quota=Quota(cpu_seconds=1),
    ),
)
