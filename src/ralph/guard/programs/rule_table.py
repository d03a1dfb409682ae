"""Subcommands that publish, deploy, delete in the cloud, or tamper: one line each.

A line is: programs, then the words that must come first, then conditions. `a|b` is one or the other, `*` stands for
anything in a word, `...` for any words in between, `~a` for a word anywhere; `+x` must be among the arguments and `!x`
must not.
"""

TABLE = {
    "publishing": """
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
    """,
    "cloud": """
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

_LINES = [line for text in TABLE.values() for line in text.strip().splitlines()]
PROGRAMS = sorted({name for line in _LINES for name in line.split()[0].split("|")})
