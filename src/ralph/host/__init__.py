"""Git (`host.git`), processes (`host.process`), files and locks. The only room that starts processes."""
