"""Which module judges which program, imported when a command first needs it. All others are left to `rules`."""

from ralph.guard.patterns import wordlist

_FAMILIES = {
    "text": """
        ack ag age ascii2uni base32 base64 basename basenc bat batcat bc brotli bunzip2 bzcat bzip2 cat column
        cut date dc dir dirname dos2unix egrep exa expand expr eza factor fgrep fmt fold gpg greadlink grep gsed
        gunzip gzip hd head hexdump iconv jq less ls lsof lz4 mktemp more nl numfmt od openssl paste pgrep pidof
        printenv ps pwd readlink realpath rev rg sed seq shuf sops sort strings tac tail tee tr tree tsort ugrep
        uniname uniq unxz uudecode wc whereis which xxd xz xzcat yes yq zcat zgrep zstd
    """,
    "files": """
        7z 7za Remove-Item bsdtar chattr chflags chgrp chmod chown cp dcfldd dd del del-cli ditto erase
        fallocate fd fdfind find gchmod gchown gcp gdd gfind gio gmv grm gshred gtar gxargs install ln mkdir
        mkfifo mknod mv rd ri rimraf rm rmdir rsync setfacl shred sponge srm tar touch trash trash-put truncate
        unlink unzip wipe xargs zip
    """,
    "git": """
        gh git git-filter-repo glab hub tig
    """,
    "system": """
        chroot doas dzdo gosu kill killall nsenter pkexec pkill run0 runuser screen skill ssh-keygen su su-exec
        sudo sudoedit tmux unshare
    """,
    "network": """
        Invoke-Expression Invoke-RestMethod Invoke-WebRequest aria2c autossh axel bashupload croc curl dbclient
        dig drill dropbox fetch ffsend ftp getent grpcurl host http httpie https iex irm iwr kdig lftp links
        lynx magic-wormhole mail mailx mosh msmtp mutt nc nc.openbsd nc.traditional ncat ncftpput netcat
        nslookup ping ping6 pscp rclone s-nail scp sendemail sendmail sftp slogin socat ssh sshpass swaks telnet
        tftp transfer w3m websocat wget wormhole xh xhs
    """,
    "shells": """
        . : [ alias ash bash bg break builtin busybox cd chdir cmd cmd.exe command continue csh dash declare
        dirs disown echo enable eval exec exit export false fg fish getopts hash history jobs ksh let local
        mapfile mksh popd powershell powershell.exe print printf pushd pwsh rbash read readarray readonly return
        set sh shift shopt sleep source tcsh test times toybox trap true type typeset ulimit umask unalias unset
        wait yash zsh
    """,
    "interpreters": """
        R Rscript awk bun c++ cc clang clang++ crystal deno ed elixir emacs emacsclient erl ex expect g++ gawk
        gcc gdb ghc gmake groovy guile ipython irb jshell julia lldb lua luajit make mawk nawk node nodejs nvim
        octave osascript perl php pike pypy pypy3 python python2 python3 qjs racket red remake ruby sbcl scala
        swift tcc tclsh ts-node tsx vi view vim vimdiff
    """,
    "wrappers": """
        apptainer arch asdf aws-vault bundle bunx busctl bwrap caffeinate catchsegv cgexec chpst chrt
        concurrently conda coproc corepack cross-env cross-env-shell dbus-run-session devbox direnv doas-env
        doppler dotenv dotenvx dtach dtruss eatmydata entr env envdir fakeroot faketime firejail flock foreman
        genv gnome-terminal gtimeout hatch honcho hyperfine infisical ionice konsole linux32 linux64 ltrace
        mamba micromamba mise nice nix nodemon nohup npm-run-all npx numactl op parallel pdm perf pipenv pipx
        pixi pnpx poetry prlimit proot proxychains proxychains4 pueue retry rlwrap rtx run-parts rye script sem
        setarch setsid setuidgid sg singularity start-stop-daemon stdbuf strace systemd-inhibit systemd-run
        taskset time timeout torify torsocks ts unbuffer uv uvx valgrind watch watchexec wsl xterm xvfb-run
    """,
    "containers": """
        buildah docker docker-compose k kubecolor kubectl microk8s nerdctl oc podman podman-compose vagrant
    """,
    "databases": """
        artisan athena beeline clickhouse clickhouse-client cockroach-sql cqlsh cypher-shell db2 django-admin
        doctrine dropdb dropuser duckdb hive impala-shell isql keydb-cli litecli manage.py mariadb mikro-orm mix
        mongo mongosh mycli mysql mysqladmin osql pg_restore pgcli presto psql rails rake redis-cli sequelize
        sequelize-cli snowsql sqlcmd sqlite sqlite3 sqlplus trino typeorm usql valkey-cli
    """,
}

MODULES: dict[str, str] = {}
for _family, _names in _FAMILIES.items():
    for _name in _names.split():
        MODULES.setdefault(_name, _family)

NOTORIOUS = wordlist(
    """
    rm dd mkfs shutdown reboot halt poweroff sudo su chmod chown kill killall pkill bash sh dash zsh curl wget nc
    git mv cp cat tee find xargs shred python python3 perl ruby node crontab systemctl docker kubectl ssh scp rsync
    tar rmdir unlink truncate env printenv base64
    """
)
"""The programs that a pattern such as `/bin/r?` may match."""
