"""Which module judges which program. A module is imported when a command first needs it."""

_FAMILIES = {
    "builtins": """
        . : [ alias bg break builtin cd chdir command continue declare dirs disown echo enable eval exec exit
        export false fg getopts hash history jobs let local mapfile popd print printf pushd read readarray
        readonly return set shift shopt sleep source test times trap true type typeset ulimit umask unalias
        unset wait
    """,
    "text": """
        ack ag age ascii2uni base32 base64 basename basenc bat batcat bc brotli bunzip2 bzcat bzip2 cat column
        cut date dc dir dirname dos2unix egrep exa expand expr eza factor fgrep fmt fold gpg greadlink grep
        gunzip gzip hd head hexdump iconv jq less ls lsof lz4 mktemp more nl numfmt od openssl paste pgrep
        pidof printenv ps pwd readlink realpath rev rg seq shuf sops sort strings tac tail tee tr tree tsort
        ugrep uniname uniq unxz uudecode wc whereis which xxd xz xzcat yes yq zcat zgrep zstd
    """,
    "files": """
        7z 7za Remove-Item bsdtar cp dcfldd dd del del-cli ditto erase fallocate gcp gdd gio gmv grm gshred
        gtar install ln mkdir mkfifo mknod mv rd ri rimraf rm rmdir rsync shred sponge srm tar touch trash
        trash-put truncate unlink unzip wipe zip
    """,
    "modes": """
        chattr chflags chgrp chmod chown gchmod gchown icacls setfacl takeown
    """,
    "finding": """
        fd fdfind find gfind gxargs xargs
    """,
    "git": """
        git git-filter-repo hub tig
    """,
    "forges": """
        bfg gh glab gt hg jj sl svn
    """,
    "killing": """
        Stop-Process fuser kill killall killall5 pkill screen skill taskkill tmux xkill
    """,
    "system": """
        Clear-Disk Format-Volume Restart-Computer Stop-Computer addgroup adduser authconfig bcdedit bless
        capsh chage chfn chpasswd chroot chsh cipher csrutil defaults deluser diskpart doas dscl dseditgroup
        dzdo efibootmgr fdesetup firewall-cmd format format.com gosu gpasswd groupadd groupdel groupmod
        grub-install halt hostname hostnamectl hwclock ifconfig init insmod ip ip6tables ipset iptables kexec
        modprobe net netsh networksetup newgrp nft nmcli nsenter nvram passwd pfctl pkexec pmset poweroff
        reboot reg resolvectl rmmod route run0 runuser sc schtasks security semodule setcap setenforce setpriv
        shutdown spctl su su-exec sudo sudoedit sysctl tccutil telinit timedatectl ufw unshare update-grub
        useradd userdel usermod vipw visudo vssadmin wevtutil wg-quick
    """,
    "disks": """
        badblocks blkdiscard btrfs cfdisk cryptsetup ddrescue debugfs diskutil dmsetup e2fsck fdisk fsck gdisk
        hdparm kpartx losetup lvcreate lvreduce lvremove mdadm mkdosfs mke2fs mkfs mkswap mount multipath
        newfs nvme parted partprobe pvcreate pvmove pvremove resize2fs sfdisk sgdisk swapoff swapon tune2fs
        umount vgcreate vgremove wipefs xfs_repair zfs zpool
    """,
    "services": """
        anacron at auditctl augenrules batch chkconfig crontab dmesg initctl invoke-rc.d journalctl launchctl
        loginctl logrotate pm2 rc-service rc-update service ssh-copy-id ssh-keygen systemctl sysv-rc-conf
        update-rc.d
    """,
    "packages": """
        apk apt apt-get aptitude brew choco dnf dpkg emerge flatpak pacman port rpm snap update-alternatives
        winget yay yum zypper
    """,
    "network": """
        Invoke-Expression Invoke-RestMethod Invoke-WebRequest aria2c axel bashupload croc curl dig drill
        dropbox fetch ffsend ftp getent grpcurl host http httpie https iex irm iwr kdig lftp links lynx
        magic-wormhole mail mailx msmtp mutt ncftpput nslookup ping ping6 pscp rclone s-nail scp sendemail
        sendmail sftp swaks tftp transfer w3m websocat wget wormhole xh xhs
    """,
    "sockets": """
        autossh bore chisel cloudflared dbclient evil-winrm frpc hydra localtunnel lt mosh msfconsole msfvenom
        nc nc.openbsd nc.traditional ncat netcat ngrok pwncat pwncat-cs slogin socat sqlmap ssh sshpass
        tailscale telnet
    """,
    "shells": """
        ash bash busybox cmd cmd.exe csh dash fish ksh mksh powershell powershell.exe pwsh rbash sh tcsh
        toybox yash zsh
    """,
    "interpreters": """
        R Rscript awk bun c++ cc clang clang++ crystal deno ed elixir emacs emacsclient erl ex expect g++ gawk
        gcc gdb ghc gmake groovy gsed guile ipython irb jshell julia lldb lua luajit make man mawk nawk node
        nodejs nvim octave osascript perl php pike pypy pypy3 python python2 python3 qjs racket red remake
        ruby sbcl scala sed swift tcc tclsh ts-node tsx vi view vim vimdiff
    """,
    "wrappers": """
        apptainer arch asdf aws-vault bundle bunx busctl bwrap caffeinate catchsegv cgexec chpst chrt
        concurrently conda coproc corepack cross-env cross-env-shell dbus-run-session devbox direnv doas-env
        doppler dotenv dotenvx dtach dtruss eatmydata entr env envdir fakeroot faketime firejail flock foreman
        genv gnome-terminal gtimeout hatch honcho hyperfine infisical ionice konsole linux32 linux64 ltrace
        mamba micromamba mise nice nix nix-shell nodemon nohup npm-run-all npx numactl op parallel pdm perf
        pipenv pipx pixi pnpx poetry prlimit proot proxychains proxychains4 pueue retry rlwrap rtx run-parts
        rye script sem setarch setsid setuidgid sg singularity start-stop-daemon stdbuf strace systemd-inhibit
        systemd-run taskset time timeout torify torsocks ts unbuffer uv uvx valgrind watch watchexec wsl xterm
        xvfb-run
    """,
    "containers": """
        VBoxManage buildah colima crictl ctr docker docker-compose helm incus k k3d k3s k3s-uninstall.sh kind
        kubecolor kubectl limactl lxc microk8s minikube multipass nerdctl oc pct podman podman-compose prlctl
        qm tart vagrant virsh
    """,
    "databases": """
        alembic artisan athena beeline bq clickhouse clickhouse-client cockroach cockroach-sql cqlsh curator
        cypher-shell db2 dbmate django-admin doctrine drizzle-kit dropdb dropuser duckdb etcdctl flask flyway
        goose hive impala-shell influx isql kafka-consumer-groups kafka-delete-records kafka-delete-records.sh
        kafka-topics kafka-topics.sh keydb-cli knex liquibase litecli manage.py mariadb migrate mikro-orm mix
        mongo mongorestore mongosh mycli mysql mysqladmin nats neo4j-admin neonctl osql pg_dropcluster
        pg_restore pgcli presto prisma pscale psql rabbitmqadmin rabbitmqctl rails rake redis-cli sequelize
        sequelize-cli snowsql sqlcmd sqlite sqlite3 sqlplus supabase trino turso typeorm usql valkey-cli
    """,
    "subcommands": """
        aider amplify anaconda ansible ansible-galaxy ansible-playbook appcenter argocd atlas auth0 aws az b2
        borg cabal cargo cdk cf chalice changeset chef civo claude claude-code code-push codepush codex
        conda-build consul copilot cosign crane crossplane cursor-agent dart doctl dotnet duplicity eas eb
        eksctl exo expo fastlane firebase flit flutter flux fly flyctl gcloud gem gemini gh-pages goreleaser
        gradle gradlew gsutil hcloud helmfile heroku ibmcloud istioctl jsr knife ko kops lerna linode-cli
        luarocks maturin mc mcp-publisher mvn mvnw netlify nomad now np npm ntl nuget oci okta openstack oras
        ovsx packer pip pip3 platform pnpm pod pulumi puppet railway ralph rattler-build release-it render
        restic rosa s3cmd salt sam sbt scw semantic-release sentry-cli serverless shipit shopify skaffold
        skopeo sls snapcraft sst stack stripe supervisorctl surge terraform terragrunt tofu twilio twine upsun
        vault velero vercel vsce vultr-cli wrangler yarn zappa
    """,
}

MODULES: dict[str, str] = {}
for _family, _names in _FAMILIES.items():
    for _name in _names.split():
        MODULES.setdefault(_name, _family)

NOTORIOUS = [
    "rm",
    "dd",
    "mkfs",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "sudo",
    "su",
    "chmod",
    "chown",
    "kill",
    "killall",
    "pkill",
    "bash",
    "sh",
    "dash",
    "zsh",
    "curl",
    "wget",
    "nc",
    "git",
    "mv",
    "cp",
    "cat",
    "tee",
    "find",
    "xargs",
    "shred",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "crontab",
    "systemctl",
    "docker",
    "kubectl",
    "ssh",
    "scp",
    "rsync",
    "tar",
    "rmdir",
    "unlink",
    "truncate",
    "env",
    "printenv",
    "base64",
]
"""The programs that a pattern such as `/bin/r?` may match."""
