"""Which function judges which program. Its module is imported when a command first needs it."""

from ralph.guard.patterns import wordlist

_JUDGES = """
    text.cat: bat batcat cat column dos2unix expand fmt fold hd head iconv less more nl paste shuf sort strings tac
        tail tsort uniq
    text.transform: ascii2uni bc dc expr factor hexdump numfmt od uniname
    text.base64: base32 base64 basenc
    text.xxd: xxd
    text.reverse: rev
    text.translate: tr
    text.cut_lines: cut
    text.unpack: age brotli bunzip2 bzcat bzip2 gpg gunzip gzip lz4 sops unxz uudecode xz xzcat zcat zstd
    text.openssl: openssl
    text.tee: tee
    text.base_name: basename dirname
    text.working_folder: pwd
    text.real_path: greadlink readlink realpath
    text.make_temp: mktemp
    text.which: whereis which
    text.print_environment: printenv
    text.date: date
    text.sequence: seq
    text.yes: yes
    text.json: jq yq
    text.list_files: dir exa eza ls tree
    text.search: ack ag egrep fgrep grep rg ugrep zgrep
    text.processes: pgrep pidof ps
    text.open_files: lsof
    text.sed: gsed sed
    files.seven_zip: 7z 7za
    files.remove: del-cli grm rimraf rm srm trash trash-put unlink wipe
    files.remove_folder: rmdir
    files.windows_delete: Remove-Item del erase rd ri
    files.move: gmv mv
    files.copy: cp ditto gcp install
    files.link: ln
    files.dd: dcfldd dd gdd
    files.make_node: mknod
    files.sponge: sponge
    files.synchronise: rsync
    files.archive: bsdtar gtar tar
    files.zip_files: zip
    files.unzip: unzip
    files.find: find gfind
    files.fd: fd fdfind
    files.xargs: gxargs xargs
    files.change_mode: chmod gchmod
    files.change_owner: chgrp chown gchown
    files.change_attributes: chattr chflags setfacl
    git.git: git git-filter-repo hub tig
    git.forge: gh glab
    system.kill: kill
    system.kill_by_name: killall pkill skill
    system.terminal: screen tmux
    system.become: doas dzdo gosu pkexec run0 runuser su su-exec sudo sudoedit
    system.enter: chroot nsenter unshare
    system.key: ssh-keygen
    network.curl: curl
    network.wget: wget
    network.downloader: Invoke-RestMethod Invoke-WebRequest aria2c axel fetch grpcurl http httpie https irm iwr
        links lynx w3m websocat xh xhs
    network.secure_copy: pscp scp
    network.file_transfer: ftp lftp ncftpput sftp tftp
    network.mail: mail mailx msmtp mutt s-nail sendemail sendmail swaks
    network.lookup: dig drill getent host kdig nslookup ping ping6
    network.send_file: bashupload croc dropbox ffsend magic-wormhole rclone transfer wormhole
    network.evaluate_expression: Invoke-Expression iex
    network.netcat: nc nc.openbsd nc.traditional ncat netcat
    network.relay: socat
    network.telnet: telnet
    network.secure_shell: autossh dbclient mosh slogin ssh
    network.with_password: sshpass
    shells.run_shell: ash bash csh dash fish ksh mksh rbash sh tcsh yash zsh
    shells.box: busybox toybox
    shells.power_shell: cmd cmd.exe powershell powershell.exe pwsh
    shells.change_folder: cd chdir popd pushd
    shells.evaluate: eval
    shells.source: . source
    shells.replace: exec
    shells.trap: trap
    shells.alias: alias
    shells.unalias: unalias
    shells.declare: declare export local readonly typeset
    shells.unset: unset
    shells.read: read
    shells.read_lines: mapfile readarray
    shells.set_options: set shopt
    shells.shift: shift
    shells.echo: echo print
    shells.printf: printf
    shells.history: history
    shells.command: builtin command
    shells.enable: enable
    shells.unknown: dirs jobs type
    shells.nothing: : [ bg break continue disown exit false fg getopts hash let return sleep test times true ulimit
        umask wait
    interpreters.python: ipython pypy pypy3 python python2 python3
    interpreters.script: R Rscript crystal elixir erl expect ghc groovy guile irb jshell julia lua luajit node
        nodejs octave osascript perl pike qjs racket sbcl scala swift tclsh ts-node tsx
    interpreters.ruby: ruby
    interpreters.bun: bun
    interpreters.php: php
    interpreters.deno: deno
    interpreters.awk: awk gawk mawk nawk
    interpreters.make: gmake make remake
    interpreters.compiler: c++ cc clang clang++ g++ gcc tcc
    interpreters.debugger: gdb lldb
    interpreters.editor: ed emacs emacsclient ex nvim red vi view vim vimdiff
    wrappers.wrapped: apptainer arch asdf bundle busctl bwrap caffeinate catchsegv cgexec chpst chrt coproc
        cross-env dbus-run-session direnv doas-env doppler dotenv dotenvx dtach dtruss eatmydata entr envdir
        fakeroot faketime firejail foreman gtimeout honcho ionice linux32 linux64 ltrace mise nice nohup numactl op
        prlimit proot proxychains proxychains4 pueue retry rlwrap rtx sem setarch setsid setuidgid sg singularity
        start-stop-daemon stdbuf strace systemd-inhibit systemd-run taskset time timeout torify torsocks ts unbuffer
        valgrind watchexec xterm xvfb-run
    wrappers.env: env genv
    wrappers.flock: flock
    wrappers.watch: watch
    wrappers.hyperfine: concurrently hyperfine npm-run-all
    wrappers.script: script
    wrappers.parallel: parallel
    wrappers.node_runner: bunx npx pnpx uvx
    wrappers.runner: aws-vault conda corepack devbox hatch infisical mamba micromamba nix pdm pipenv pipx pixi
        poetry rye uv wsl
    wrappers.nodemon: cross-env-shell nodemon
    wrappers.terminal: gnome-terminal konsole
    wrappers.perf: perf
    wrappers.cron_like: run-parts
    containers.docker: buildah docker nerdctl podman
    containers.compose: docker-compose podman-compose
    containers.kubectl: k kubecolor kubectl microk8s oc
    containers.vagrant: vagrant
    databases.client: cockroach-sql mariadb mycli mysql pgcli psql usql
    databases.sqlite: duckdb litecli sqlite sqlite3
    databases.mongo: mongo mongosh
    databases.redis: keydb-cli redis-cli valkey-cli
    databases.drop: dropdb dropuser
    databases.admin: mysqladmin
    databases.pg_restore: pg_restore
    databases.tasks: artisan django-admin doctrine manage.py mikro-orm mix rails rake sequelize sequelize-cli
        typeorm
    databases.other_client: athena beeline clickhouse clickhouse-client cqlsh cypher-shell db2 hive impala-shell
        isql osql presto snowsql sqlcmd sqlplus trino
"""

INDEX: dict[str, str] = {}
"""Program → `module.function`. All others are left to `rules.judge`."""
for _word in _JUDGES.split():
    if _word.endswith(":") and "." in _word:
        _judge = _word[:-1]
    else:
        INDEX[_word] = _judge

NOTORIOUS = wordlist(
    """
    rm dd mkfs shutdown reboot halt poweroff sudo su chmod chown kill killall pkill bash sh dash zsh curl wget nc
    git mv cp cat tee find xargs shred python python3 perl ruby node crontab systemctl docker kubectl ssh scp rsync
    tar rmdir unlink truncate env printenv base64
    """
)
"""The programs that a pattern such as `/bin/r?` may match."""
