# Sourced by scripts/test and scripts/demo, with $root set to the clone: makes sure that $root/.venv exists and matches
# the lock. Needs Python 3.11+ with its venv module and nothing else. PYTHON=... chooses the interpreter.

# These would make the new environment, or pip, look elsewhere. Indexes, proxies and certificates of the user stay.
unset PYTHONHOME PYTHONPATH PYTHONSTARTUP VIRTUAL_ENV __PYVENV_LAUNCHER__ 2>/dev/null || :

complete='import sys; v = sys.version_info >= (3, 11)
try: import ensurepip, venv
except ImportError: sys.exit(4 if v else 3)
sys.exit(0 if v else 3)'

find_python() {
    incomplete=
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11 python
    fi
    for candidate in "$@"; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        # A name on PATH may be a stub that only says that nothing is installed: believe what runs.
        if "$candidate" -I -c "$complete" >/dev/null 2>&1; then
            python=$candidate
            return 0
        elif [ $? -eq 4 ] && [ -z "$incomplete" ]; then
            incomplete=$candidate
        fi
    done
    if [ -n "$incomplete" ]; then
        echo "error: $incomplete has no venv module (or no ensurepip)." >&2
        echo "  On Debian and Ubuntu: apt install python3-venv. PYTHON=/path/to/python3 chooses another one." >&2
    elif [ -n "${PYTHON:-}" ]; then
        echo "error: PYTHON=$PYTHON does not start a Python 3.11 or newer." >&2
    else
        echo "error: Python 3.11 or newer is required and was not found on PATH." >&2
        echo "  PYTHON=/path/to/python3 chooses an interpreter elsewhere." >&2
    fi
    return 1
}

# An environment that is ready is used as it is, whichever python3 comes first on PATH today.
if [ -n "${PYTHON:-}" ] || ! "$root/.venv/bin/python" -I "$root/scripts/make_venv.py" --is-ready 2>/dev/null; then
    find_python || exit 1
    "$python" -I "$root/scripts/make_venv.py" || exit $?
fi
