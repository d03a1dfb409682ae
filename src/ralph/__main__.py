"""`python -m ralph`, and the script `ralph`."""


def main() -> None:
    """While modules are imported, Ctrl-C just ends the process: no traceback, and no interrupt in the middle of an
    extension module's own work, which has crashed it. `cli.main` puts Python's handler back."""
    import _signal  # type: ignore[import-not-found]  # `signal` itself takes a while to import

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from ralph.cli.main import entry

    entry()


if __name__ == "__main__":
    main()
