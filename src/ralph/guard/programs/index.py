"""Which module judges which program. A module is imported when a command first needs it."""

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
        fallocate fd fdfind find gchmod gchown gcp gdd gfind gio gmv grm gshred gtar gxargs icacls install ln
        mkdir mkfifo mknod mv rd ri rimraf rm rmdir rsync setfacl shred sponge srm takeown tar touch trash
        trash-put truncate unlink unzip wipe xargs zip
    """,
    "git": """
        bfg gh git git-filter-repo glab gt hg hub jj sl svn tig
    """,
    "system": """
        Clear-Disk Format-Volume Restart-Computer Stop-Computer Stop-Process addgroup adduser anacron apk apt
        apt-get aptitude at auditctl augenrules authconfig badblocks batch bcdedit bless blkdiscard brew btrfs
        capsh cfdisk chage chfn chkconfig choco chpasswd chroot chsh cipher crontab cryptsetup csrutil ddrescue
        debugfs defaults deluser diskpart diskutil dmesg dmsetup dnf doas dpkg dscl dseditgroup dzdo e2fsck
        efibootmgr emerge fdesetup fdisk firewall-cmd flatpak format format.com fsck fuser gdisk gosu gpasswd
        groupadd groupdel groupmod grub-install halt hdparm hostname hostnamectl hwclock ifconfig init initctl
        insmod invoke-rc.d ip ip6tables ipset iptables journalctl kexec kill killall killall5 kpartx launchctl
        loginctl logrotate losetup lvcreate lvreduce lvremove mdadm mkdosfs mke2fs mkfs mkswap modprobe mount
        multipath net netsh networksetup newfs newgrp nft nmcli nsenter nvme nvram pacman parted partprobe
        passwd pfctl pkexec pkill pm2 pmset port poweroff pvcreate pvmove pvremove rc-service rc-update reboot
        reg resize2fs resolvectl rmmod route rpm run0 runuser sc schtasks screen security semodule service
        setcap setenforce setpriv sfdisk sgdisk shutdown skill snap spctl ssh-copy-id ssh-keygen su su-exec sudo
        sudoedit swapoff swapon sysctl systemctl sysv-rc-conf taskkill tccutil telinit timedatectl tmux tune2fs
        ufw umount unshare update-alternatives update-grub update-rc.d useradd userdel usermod vgcreate vgremove
        vipw visudo vssadmin wevtutil wg-quick winget wipefs xfs_repair xkill yay yum zfs zpool zypper
    """,
    "network": """
        Invoke-Expression Invoke-RestMethod Invoke-WebRequest aria2c autossh axel bashupload bore chisel
        cloudflared croc curl dbclient dig drill dropbox evil-winrm fetch ffsend frpc ftp getent grpcurl host
        http httpie https hydra iex irm iwr kdig lftp links localtunnel lt lynx magic-wormhole mail mailx mosh
        msfconsole msfvenom msmtp mutt nc nc.openbsd nc.traditional ncat ncftpput netcat ngrok nslookup ping
        ping6 pscp pwncat pwncat-cs rclone s-nail scp sendemail sendmail sftp slogin socat sqlmap ssh sshpass
        swaks tailscale telnet tftp transfer w3m websocat wget wormhole xh xhs
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
        gcc gdb ghc gmake groovy guile ipython irb jshell julia lldb lua luajit make man mawk nawk node nodejs
        nvim octave osascript perl php pike pypy pypy3 python python2 python3 qjs racket red remake ruby sbcl
        scala swift tcc tclsh ts-node tsx vi view vim vimdiff
    """,
    "wrappers": """
        apptainer arch asdf aws-vault bundle bunx busctl bwrap caffeinate catchsegv cgexec chpst chrt
        concurrently conda coproc corepack cross-env cross-env-shell dbus-run-session devbox direnv doas-env
        doppler dotenv dotenvx dtach dtruss eatmydata entr env envdir fakeroot faketime firejail flock foreman
        genv gnome-terminal gtimeout hatch honcho hyperfine infisical ionice konsole linux32 linux64 ltrace
        mamba micromamba mise nice nix nix-shell nodemon nohup npm-run-all npx numactl op parallel pdm perf
        pipenv pipx pixi pnpx poetry prlimit proot proxychains proxychains4 pueue retry rlwrap rtx run-parts rye
        script sem setarch setsid setuidgid sg singularity start-stop-daemon stdbuf strace systemd-inhibit
        systemd-run taskset time timeout torify torsocks ts unbuffer uv uvx valgrind watch watchexec wsl xterm
        xvfb-run
    """,
    "containers": """
        VBoxManage buildah colima crictl ctr docker docker-compose helm incus k k3d k3s k3s-uninstall.sh kind
        kubecolor kubectl limactl lxc microk8s minikube multipass nerdctl oc pct podman podman-compose prlctl qm
        tart vagrant virsh
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
    "rules": """
        aider amplify anaconda ansible ansible-galaxy ansible-playbook appcenter argocd atlas auth0 aws az b2
        borg cabal cargo cdk cf chalice changeset chef civo claude claude-code code-push codepush codex
        conda-build consul copilot cosign crane crossplane cursor-agent dart doctl dotnet duplicity eas eb
        eksctl exo expo fastlane firebase flit flutter flux fly flyctl gcloud gem gemini gh-pages goreleaser
        gradle gradlew gsutil hcloud helmfile heroku ibmcloud istioctl jsr knife ko kops lerna linode-cli
        luarocks maturin mc mcp-publisher mvn mvnw netlify nomad now np npm ntl nuget oci okta openstack oras
        ovsx packer pip pip3 platform pnpm pod pulumi puppet railway ralph rattler-build release-it render
        restic rosa s3cmd salt sam sbt scw semantic-release sentry-cli serverless shipit shopify skaffold skopeo
        sls snapcraft sst stack stripe supervisorctl surge terraform terragrunt tofu twilio twine upsun vault
        velero vercel vsce vultr-cli wrangler yarn zappa
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
