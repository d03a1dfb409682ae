"""What programs must not be run with, one rule a line.

A line is: programs, words, conditions, and ` : message` if the category alone does not say enough.

    a|b     the next word is one of these; `*` stands for any letters, `...` for any words in between
    ^a|b    the next word is none of these (the first argument, if an option is among them)
    ~a|b    a word anywhere
    +a|b    one of these is among the arguments
    !a|b    none of these is
    @  @1   a path: any word, or the first, is not a file in the workspace or in a temporary folder

`git-push` is `git push`, likewise for the others that have subcommands with options of their own. OPTIONS has the
programs whose options are known. For these `-f` also means `-rf`, and `--forc` means `--force`.
"""

_DRY = "!--dry-run|-s|--simulate|--just-print"
_SERVICES = "systemctl|rc-update|chkconfig|update-rc.d|launchctl|initctl|sysv-rc-conf|invoke-rc.d"
_SERVICE_LOOKS = (
    "status|show|list-units|list-unit-files|is-active|is-enabled|is-failed|cat|list-timers|list-sockets|help|get-default"
    "|list-dependencies|show-environment|list|print|blame|list-jobs|get|dumpstate|version"
)
_POWER = "poweroff|reboot|halt|kexec|suspend|hibernate|rescue|emergency|isolate|exit|hybrid-sleep"
_DISK_LOOKS = "list|status|show|info|get|print|property|luksdump|usage|apfs|history|iostat"
_DISK_LOOKS += "|-l|-v|--detail|--examine|-i|-f|-a|-n|-j"
_DISK_HARM = (
    "destroy|delete|erase|remove|format|create|zero|stop|rollback|erasedisk|secureerase|erasevolume|partitiondisk"
    "|luksformat|luksremovekey|luksdelkey|--zero-superblock|--stop|--create|--remove|sanitize|reformat|unmountdisk"
)
_PARTITIONS = "fdisk|sfdisk|sgdisk|gdisk|parted|cfdisk"
_PARTITION_LOOKS = "-l|--list|--print|-p|-V|print|-d|--dump|-n|--no-act"
_PARTITION_HARM = "rm|mklabel|mkpart|--delete|-Z"
_CONTAINERS = "docker|podman|nerdctl|buildah"
_MACHINES = "lxc|incus|multipass|virsh|VBoxManage|qm|pct|ctr|crictl|colima|limactl|tart|prlctl"
_MACHINE_HARM = "delete|destroy|rm|remove|purge|undefine|unregistervm|prune|reset|stop-all|nuke|kill"
_FORCED = "--force|-f|--mirror|--delete|-d|--prune|--force-with-lease"
_PACKAGES = ": This removes system packages or changes system services"
_FORGE = ": This changes the project for everyone"

TABLE = {
    "git-history": f"""
        git-push !-n|--dry-run +{_FORCED} : This overwrites or deletes content of another repository
        git-push !-n|--dry-run +[+]*|:* : This overwrites or deletes content of another repository
        git-reset +--hard|--merge : This discards uncommitted changes
        git-switch +-f|--force|--discard-changes : This discards uncommitted changes
        git-checkout +-f|--force : This discards uncommitted changes
        git-clean +-f|--force !-n|--dry-run : This deletes untracked files
        git-branch +-D : This deletes a branch, even if it is not merged
        git-branch +-d|--delete +-f|--force : This deletes a branch, even if it is not merged
        git-branch * +-f|--force !-D|-d|--delete : This moves a branch
        git-branch ~main|master|trunk|production|prod|release +-d|--delete : This deletes a main branch
        git-reflog expire|delete !--dry-run|-n : This deletes the reflog
        git-gc +--prune|--prune=* !--prune=never|--prune=2.weeks.ago : This deletes unreachable commits
        git-prune !--dry-run|-n : This deletes unreachable commits
        git-filter-branch|git-filter-repo !--analyze|--dry-run : This rewrites history
        git-stash drop|clear : This deletes stashed changes
        git-update-ref +-d|--stdin : This deletes or moves a ref
        git-update-ref refs/heads/*|HEAD* : This deletes or moves a ref
        git-symbolic-ref +-d|--delete : This deletes a ref
        git-tag +-d|--delete|-f|--force : This deletes or moves a tag
        git-worktree remove +-f|--force : This deletes a worktree with uncommitted changes
        git-submodule deinit +-f|--force : This deletes submodules with uncommitted changes
        git-read-tree +--reset : This discards the changes of a whole tree
        git-checkout-index +-a|--all +-f|--force : This discards the changes of a whole tree
        git-svn|git-lfs|git-subtree|git-p4|git-annex prune !--dry-run|-d : This deletes objects from git's storage
        bfg : This rewrites history
        svn revert +-R|. : This discards the changes of a whole tree
        hg update|up|revert +-C|--clean|--all|-a : This discards the changes of a whole tree
        hg|svn|jj|sl|gt strip|hide|purge|abandon !--dry-run
        jj|sl op restore|undo !--dry-run
    """,
    "git-push": f"""
        git-push !-n|--dry-run|{_FORCED}|[+]*|:*
        git-svn|git-lfs|git-subtree|git-p4|git-annex push|dcommit|submit !--dry-run
        git-send-pack|git-send-email|git-http-push !--dry-run : This sends commits by email
        hg|svn|jj|sl|gt push|submit|ss|dcommit !--dry-run
        jj|sl|gt git|stack push|submit !--dry-run
        svn commit|ci|import !--dry-run
    """,
    "git-merge": f"""
        git-flow * finish|publish|release
        gh|glab pr merge|close|lock {_FORGE}
        gh|glab mr merge|close|delete {_FORGE}
    """,
    "privilege": """
        visudo|passwd|chpasswd|usermod|useradd|userdel|adduser|deluser|groupadd|groupdel|gpasswd|chsh|chfn|newgrp
        setcap|vipw|addgroup|dscl|dseditgroup|authconfig|chage|groupmod|setpriv|capsh
        security delete-*|add-trusted*|set-key*|unlock*
        net +*/add*|*stop*|*/delete*
    """,
    "shutdown": f"""
        reboot|halt|poweroff|kexec|Stop-Computer|Restart-Computer
        shutdown !-c
        init|telinit +0|1|6|s|S
        {_SERVICES}|loginctl {_POWER}
    """,
    "devices": f"""
        mkfs|mke2fs|newfs|mkdosfs @
        {_PARTITIONS} @1 !{_PARTITION_LOOKS}
        {_PARTITIONS} @1 +{_PARTITION_HARM}
        wipefs @ !{_PARTITION_LOOKS}
        wipefs @ +{_PARTITION_HARM}
        lvremove|vgremove|pvremove|lvreduce|pvcreate|vgcreate|lvcreate|umount|swapoff|mkswap|resize2fs|e2fsck|xfs_repair
        debugfs|blkdiscard|badblocks|dmsetup|kpartx|ddrescue|partprobe|multipath|pvmove
        fsck|btrfs|diskutil|nvme|mdadm|cryptsetup|tune2fs !{_DISK_LOOKS}
        mount|zfs|zpool +* !{_DISK_LOOKS}
        mount|fsck|btrfs|diskutil|nvme|zfs|zpool|mdadm|cryptsetup|tune2fs +{_DISK_HARM}
        losetup|swapon +* !{_DISK_LOOKS}|--show|-s
        hdparm !{_DISK_LOOKS}|--show|-s
        vssadmin +*delete*
        diskpart|format|Format-Volume|Clear-Disk|cipher|format.com
    """,
    "permissions": """
        icacls|takeown +/t|/r|/grant|/f
    """,
    "kill": """
        killall5|xkill
        fuser +-k|--kill +-m|-M
        fuser ~/|/home|. +-k|--kill
        taskkill|Stop-Process +*[*]*|*explorer*|*svchost*|*winlogon*|*csrss*|*node*|*python*
        tmux +kill-server : This kills all sessions
        tmux kill-session +-a : This kills all sessions
        loginctl kill*|terminate*
        pm2 delete|stop all
        pm2 kill
    """,
    "remote-code": f"""
        deno run http:*|https:*
        gh|glab extension install {_FORGE}
    """,
    "exfiltration": """
        security find-*|dump-*|export* : This shows passwords
    """,
    "remote-shell": """
        ngrok|cloudflared|localtunnel|lt|chisel|frpc|bore|tailscale !version|help|config|--version|status : \
            This exposes this machine to others
        msfvenom|msfconsole|pwncat|pwncat-cs|hydra|sqlmap|evil-winrm
    """,
    "persistence": f"""
        service|rc-service !--status-all|status : This starts, stops or changes a service
        {_SERVICES} ^{_SERVICE_LOOKS} !auditd|rsyslog|syslog|auditd.service : \
            This starts, stops or changes a service
        crontab !-l : This changes scheduled jobs
        crontab * : This changes scheduled jobs
        at|batch|anacron !-l|-c|-V : This runs something after the session ends
        loginctl enable-linger|disable-linger
        ssh-copy-id : This authorizes a key on another machine
        pm2 startup|unstartup|save
        schtasks !*/query*
        gh|glab ssh-key|gpg-key add|delete {_FORGE}
    """,
    "audit": f"""
        {_SERVICES} ^{_SERVICE_LOOKS} +auditd|rsyslog|syslog|auditd.service : This changes what the system logs
        journalctl +--vacuum*|--rotate*|--flush*|--relinquish*
        auditctl|augenrules !-l|-s|-v
        dmesg +-c|-C|--clear|--read-clear
        logrotate +-f|--force
        wevtutil cl*
    """,
    "system": f"""
        iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|ipset \
            !-L|-S|--list|status|list|--list-all|-V|--version|-nL|-vnL|-nvL|-Ln|verbose : This changes firewall rules
        ip|ifconfig|route|nmcli|networksetup|resolvectl|wg-quick \
            +add|del|delete|flush|set|down|up|replace|disconnect|modify|off : This changes network settings
        netsh +*set*|*add*|*delete*|*reset*
        sysctl +-w|--write|-p|*=*
        hostnamectl|timedatectl ^status|show|list-timezones
        hostname|hwclock|efibootmgr|defaults|nvram|pmset|spctl|csrutil|reg|sc \
            ^read|find|-r|--show|-v|-f|-i|-p|-g|status|query|--status|-I|-s|-d
        setenforce|modprobe|insmod|rmmod|grub-install|update-grub|tccutil|bcdedit|bless|fdesetup|semodule
        apt|apt-get|aptitude remove|purge|autoremove|full-upgrade|dist-upgrade {_DRY} {_PACKAGES}
        yum|dnf|zypper|apk|snap|flatpak|port|choco|winget remove|erase|autoremove|rm|del|uninstall {_DRY} {_PACKAGES}
        brew uninstall|remove|rm|autoremove {_DRY} {_PACKAGES}
        brew services ^list|info {_DRY} {_PACKAGES}
        emerge +--unmerge|--depclean|-C {_DRY} {_PACKAGES}
        dpkg|rpm|pacman +-r*|-P*|--purge|--remove|-e*|--erase|-R* !-q*|{_DRY[1:]} : This removes system packages
        update-alternatives !--display|--list|--query|--get-selections
    """,
    "containers": f"""
        {_CONTAINERS} system|volume|container prune
        {_CONTAINERS} system reset
        {_CONTAINERS} image prune +-a|--all|-af|-fa
        {_CONTAINERS} rm +-v|--volumes|-vf|-fv : This removes volumes and their data
        {_CONTAINERS} container rm +-v|--volumes|-vf|-fv : This removes volumes and their data
        {_CONTAINERS} volume rm|remove : This removes volumes and their data
        {_CONTAINERS} swarm|stack|service|node|secret leave|rm|remove|down
        {_CONTAINERS} machine|context|plugin rm|remove|reset
        docker-compose down +-v|--volumes|--rmi : This removes volumes or images and their data
        docker-compose rm +-*v* : This removes volumes and their data
        {_MACHINES} {_MACHINE_HARM}
        {_MACHINES} * {_MACHINE_HARM}
        vagrant destroy
        vagrant box remove
    """,
    "cluster": f"""
        kubectl delete|drain|cordon|taint|evict|uncordon
        kubectl scale +*replicas=0
        kubectl replace +--force
        kubectl apply +--prune
        kubectl rollout undo
        kubectl patch|edit|annotate +*finalizers*
        kubectl config delete-*|unset*
        helm uninstall|delete|del|un|rollback !--dry-run
        kind|k3d|minikube|k3s {_MACHINE_HARM}
        kind|k3d|minikube|k3s * {_MACHINE_HARM}
        k3s-uninstall.sh
    """,
    "databases": """
        prisma ~migrate ~reset !--dry-run
        prisma ~db ~push +--force-reset !--dry-run
        prisma ~db ~execute !--dry-run
        supabase ~db ~reset|push !--dry-run
        supabase ~projects|branches|functions ~delete !--dry-run
        alembic ~downgrade ~base !--dry-run
        flask ~db ~downgrade ~base !--dry-run
        flask ~drop-db|reset-db !--dry-run
        knex ~migrate:rollback +--all !--dry-run
        drizzle-kit|dbmate|migrate ~drop !--dry-run
        migrate ~down +-all !--dry-run
        flyway ~clean !--dry-run
        liquibase ~dropAll|drop-all !--dry-run
        goose ~reset !--dry-run
        neo4j-admin ~database ~delete !--dry-run
        etcdctl ~del !--dry-run
        influx|curator|rabbitmqadmin ~delete !--dry-run
        rabbitmqadmin ~purge !--dry-run
        bq ~rm !--dry-run
        rabbitmqctl ~reset|force_reset|delete_queue|purge_queue|stop_app|delete_vhost !--dry-run
        nats ~stream ~rm|purge !--dry-run
        nats ~kv ~del !--dry-run
        pg_dropcluster|kafka-delete-records|kafka-delete-records.sh !--dry-run
        kafka-topics|kafka-topics.sh|kafka-consumer-groups +--delete !--dry-run
        cockroach ~node ~decommission !--dry-run
        pscale ~database|branch ~delete !--dry-run
        turso ~db ~destroy !--dry-run
        neonctl ~projects|branches ~delete !--dry-run
        mongorestore +--drop !--dry-run
    """,
    "publishing": f"""
        npm|pnpm|yarn|bun|lerna|changeset|jsr publish !--dry-run
        yarn|pnpm npm publish
        yarn workspace|workspaces ... publish
        pnpm|yarn|npm ... publish +-r
        npm unpublish|deprecate|adduser
        npm owner|team|hook|access|dist-tag add|rm|create|destroy|grant|revoke|public|restricted|set
        npm token create|revoke
        semantic-release|np|release-it|shipit|surge|mcp-publisher !--dry-run !-d !--preview
        gh-pages ...
        twine|flit|maturin|anaconda|cabal|luarocks upload|publish|register !--dry-run
        stack upload
        cargo publish|yank|owner|release !--dry-run !-n
        gem push|yank|owner
        mvn|mvnw|gradle|gradlew|sbt ~deploy|publish|publishToMavenCentral|uploadArchives|publishSigned
        mvn|mvnw|gradle|gradlew|sbt ~release:perform|jreleaserRelease
        mvn|mvnw|gradle|gradlew|sbt ~publishAllPublications*|publishPlugins|sonatypeBundleRelease|deploy:deploy*
        nuget push|delete
        dotnet nuget push|delete
        skopeo copy|sync|delete
        crane push|copy|delete|tag
        oras|cosign push|delete|copy|sign|attach
        goreleaser release|publish|continue !--snapshot !--skip=publish
        goreleaser !--snapshot !check !build !--skip-publish !init !healthcheck
        vsce|ovsx publish|unpublish
        dart|flutter pub publish !--dry-run !-n
        pod trunk push|delete|deprecate
        fastlane deliver|pilot|supply|upload_to_*|release|beta|deploy
        deno publish !--dry-run
        wrangler deploy|publish|delete|rollback !--dry-run
        firebase deploy|hosting:disable
        vercel|now deploy +--prod
        vercel|now +--prod
        vercel|now promote|rollback|redeploy
        netlify|ntl deploy +--prod
        netlify|ntl deploy +-p
        fly|flyctl|railway|render deploy|up|launch
        eb|serverless|sls|sst|chalice|zappa|copilot|amplify deploy|create|publish|push|update
        cdk|sam deploy !--no-execute-changeset
        gcloud app|run|functions deploy
        az webapp|functionapp up|deploy|deployment
        heroku container:release|container:push|pipelines:promote
        expo|eas publish|submit|update
        appcenter|codepush|code-push release*|distribute
        shopify theme|app push|deploy|publish
        ko|skaffold publish|run|deploy|apply
        sentry-cli releases deploys|delete|finalize
        conda-build|rattler-build upload
        ansible-galaxy collection|role publish|import
        snapcraft upload|release|push|close
        {_CONTAINERS}|docker-compose push
        {_CONTAINERS} buildx|build|manifest|image|compose push
        {_CONTAINERS} buildx|build|manifest|image|compose +--push
        helm push|cm-push
        gh|glab release create|delete|upload|edit|delete-asset {_FORGE}
    """,
    "cloud": f"""
        gh|glab repo delete|archive|unarchive|rename|edit|transfer|sync|deploy-key {_FORGE}
        gh|glab issue delete|transfer|lock {_FORGE}
        gh|glab secret|variable set|delete|remove {_FORGE}
        gh|glab workflow disable|run {_FORGE}
        gh|glab run delete|cancel {_FORGE}
        gh|glab codespace delete|ssh {_FORGE}
        gh|glab project delete|close {_FORGE}
        gh|glab auth logout|refresh|setup-git {_FORGE}
        gh|glab ^pr|mr delete|archive|unarchive|transfer {_FORGE}
        rclone purge|delete|deletefile|sync|move|cleanup|rmdir|rmdirs !--dry-run|-n : \
            This deletes files in remote storage
        aws s3 rm|rb|mv !--dryrun
        aws s3 sync +--delete !--dryrun
        aws s3api delete-*|put-bucket-policy|put-bucket-acl
        aws * delete-*|terminate-*|remove-*|deregister-*|purge-*|stop-*|reboot-*|revoke-*|disable-*|destroy-*|release-*
        aws iam create-*|attach-*|put-*|add-*|update-*
        aws * put-key-policy|schedule-key-deletion|modify-*|reset-*|cancel-*|detach-*
        aws cloudformation deploy|update-stack|create-stack
        aws configure set
        aws secretsmanager|ssm put-*|update-*
        gcloud ... delete|destroy|remove-iam-policy-binding|add-iam-policy-binding|reset|stop|disable|set-iam-policy
        gcloud storage rm|mv
        gsutil rm|rb|mv
        gsutil ... rm|rb
        gsutil rsync +-d
        az ... delete*|purge|deallocate|stop|remove|disable|reset
        az group|vm|aks delete
        az role assignment create
        doctl|hcloud|linode-cli|vultr-cli|scw|civo|exo|ibmcloud|oci|openstack|rosa|upsun|platform ... delete|destroy
        doctl|hcloud|linode-cli|vultr-cli|scw|civo|exo|ibmcloud|oci|openstack|rosa ... terminate|rm|remove|shutdown
        doctl|hcloud|linode-cli|vultr-cli|scw|civo|exo|ibmcloud|oci|openstack|rosa ... poweroff|reset|rebuild
        terraform|tofu|terragrunt destroy
        terraform|tofu|terragrunt apply
        terraform|tofu|terragrunt run-all|run ... apply|destroy
        terraform|tofu state rm|push|mv|replace-provider
        terraform|tofu workspace delete
        terraform|tofu taint|force-unlock|import|untaint
        pulumi destroy|up|update|cancel|refresh !--preview-only
        pulumi stack rm
        pulumi state delete
        cdk|sst|serverless|sls|sam|copilot|chalice|zappa|amplify destroy|remove|delete|undeploy
        heroku apps:destroy|destroy|pg:reset|addons:destroy|ps:scale|maintenance:on|domains:clear
        heroku config:unset|access:remove
        fly|flyctl apps destroy
        fly|flyctl destroy
        fly|flyctl machine|volumes|postgres|secrets destroy|delete|unset|kill|stop
        vercel rm|remove
        vercel env|domains|alias|secrets|project rm|remove
        netlify sites:delete|env:unset|env:set
        firebase firestore:delete|database:remove|projects:*|functions:delete|apphosting:*|auth:import|database:set
        wrangler kv|r2|d1|secret|queues delete|bulk|put
        wrangler kv|r2|d1 namespace|bucket|key|object delete
        railway down|delete|remove
        render services delete
        cf delete|delete-*|unbind-*|stop|delete-org
        eb terminate
        vault delete|destroy|write
        vault kv delete|destroy|metadata|put
        vault token|lease|operator|auth|secrets|policy revoke|seal|disable|delete|rekey|step-down|rotate
        consul kv delete|put
        consul leave|force-leave
        nomad job stop|purge
        nomad stop|system|node
        eksctl|kops delete
        eksctl|kops ... delete
        argocd app delete|sync|terminate-op|rollback
        argocd cluster|repo|proj rm|delete
        flux uninstall|delete
        istioctl uninstall|x
        velero ... delete
        op|doppler|infisical ... delete|archive|revoke
        skaffold delete
        crossplane ... delete
        helmfile destroy|delete|apply|sync
        ansible ... +-b
        ansible-playbook !--check !-C !--syntax-check !--list-tasks !--list-hosts !--list-tags
        salt|knife|chef|puppet ...
        packer build +-force
        restic|borg forget|prune|delete|recreate|unlock|break-lock
        borg delete|prune|compact|rdelete|repo-delete
        duplicity remove-*|cleanup
        s3cmd del|rb|rm|sync|mv
        mc rm|rb|mirror|admin
        b2 delete*|rm|sync
        stripe ... delete
        stripe delete|refunds
        auth0|okta|twilio ... delete|remove
        atlas ... delete
        sentry-cli ... delete
        supervisorctl stop|shutdown|remove|reload
    """,
    "tampering": """
        git-commit +--no-verify|-n : This skips the project's commit hooks
        ralph stream merge
        ralph trust|answer
        ralph config set|unset|edit|reset|remove
        ralph hooks uninstall|install|remove|disable
        ralph rescue drop|clear
        ralph plugin remove|uninstall
        ralph stop|pause|unlock|reset
        ralph --reset-circuit
        ralph run +--no-hooks
        claude|claude-code +--dangerously-skip-permissions
        claude|claude-code +--allow-dangerously-skip-permissions
        claude|claude-code +--bare
        claude|claude-code +bypassPermissions
        claude config|mcp|plugin add|add-json|remove|set|uninstall|install|enable|disable|marketplace
        codex +--dangerously-bypass-approvals-and-sandbox
        codex +--yolo
        gemini +--yolo
        gemini +-y
        cursor-agent +--force
        cursor-agent +-f
        aider +--yes-always
        pip|pip3 uninstall ... ralph*
        npm|pnpm|yarn|bun uninstall|remove|rm|un ... @anthropic-ai/claude-code*
    """,
}

OPTIONS = """
    git-push o --repo --push-option --receive-pack --exec
    git-reset|git-read-tree|git-checkout-index|git-symbolic-ref|git-reflog|git-prune|git-worktree|git-submodule -
    git-clean e --exclude
    git-checkout bB --orphan --conflict --pathspec-from-file
    git-switch cC --create --force-create --orphan
    git-restore s --source --pathspec-from-file
    git-branch u --set-upstream-to --contains --merged --no-merged --sort --format
    git-update-ref m
    git-merge mFsXS --into-name --strategy --strategy-option --file
    git-rebase xsXC --exec --onto --strategy --strategy-option
    git-pull sX --upload-pack
    git-fetch - --upload-pack --depth --deepen --shallow-since
    git-rm - --pathspec-from-file
    git-commit mFCct --message --file --author --date --template --fixup --squash
    git-tag mFu --message --file --sort --format --contains --points-at
    git-clone bcouj --branch --config --upload-pack --origin --depth --template
    git-config f --file --blob --type --default
    git-archive o --output --exec --remote --prefix --format
    git-format-patch o --output-directory --output
    git-grep|git-difftool|git-ls-remote Ox --extcmd --open-files-in-pager --upload-pack --exec
    git-diff|git-log|git-show|git-whatchanged|git-range-diff|git-diff-tree|git-diff-index|git-diff-files - --output
    gh|glab RbtFfXHqlaBcT --repo --body --title --method --field --header --jq
    systemctl|rc-update|chkconfig|update-rc.d|launchctl|initctl|sysv-rc-conf|invoke-rc.d|service|rc-service Htnop \
        --host --type --state --property
    shred|gshred ns
    truncate|fallocate sr --size --reference
    touch drt
    mkdir|mkfifo mogS --mode --owner --group
    crontab u
    dmesg lnf
    fuser nM
    mkfs|mke2fs|newfs|mkdosfs tLbNUmiIEOTGcqV
    fdisk|sfdisk|sgdisk|gdisk|parted|cfdisk|wipefs bt
    helm nf --context --host --log-level --config --namespace --kubeconfig --cluster --user
    docker|podman|nerdctl|buildah Hcl --context --host --log-level --config --namespace --kubeconfig --cluster --user
    docker-compose fp --file --project-name --profile --env-file
    kubectl ncs --context --host --log-level --config --namespace --kubeconfig --cluster \
        --user --server --token
    vagrant c --command
    man PS --pager
    nix-shell pA --run --command --packages
    npm w $
    gradle|gradlew pbPD $
    mvn|mvnw fPpD $
    fly ac $
    heroku a $
"""
"""Options with a value: the letters of the short ones, and the long ones; `$` stands for COMMON."""

COMMON = """
    --profile --region --output --endpoint-url --query --project --zone --prefix --workspace --registry --cwd --repo
    --manifest-path --directory --stack --app --context --namespace --account --configuration --filter --tag --config
    --token --subscription --resource-group --team --scope -chdir --index-url --org --stage --dir --file --settings
    --model
"""
"""Options with a value, of all other programs."""

RUNS = """
    git-push --receive-pack|--exec
    git-pull|git-fetch --upload-pack
    git-rebase -x|--exec
    git-archive --exec
    git-clone -u|--upload-pack
    git-grep|git-difftool|git-ls-remote -O|-x|--extcmd|--open-files-in-pager|--upload-pack|--exec
    man -P|--pager
    nix-shell --run|--command
"""
"""Options whose value is a command that the program runs."""

WRITES = """
    git-archive -o|--output
    git-format-patch -o|--output-directory|--output
    git-diff|git-log|git-show|git-whatchanged|git-range-diff|git-diff-tree|git-diff-index|git-diff-files --output
    git-stash --output
"""
"""Options whose value is a file that the program writes."""

EFFECTS = """
    shred|gshred delete
    gio trash|remove|move delete
    truncate|fallocate write
    touch append
    mkdir|mkfifo folder
"""
"""Programs whose arguments are paths, after the words that come first: what they do to each of them."""
