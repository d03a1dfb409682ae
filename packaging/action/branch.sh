#!/usr/bin/env bash
# Switch to BRANCH: the remote's, if it has one, else a new one from here. This step has the token (GH_TOKEN), the next
# one, in which the agent works, has not; so `persist-credentials: false` is right for actions/checkout.
set -euo pipefail

git config --get user.name >/dev/null || git config user.name "github-actions[bot]"
git config --get user.email >/dev/null || git config user.email "41898282+github-actions[bot]@users.noreply.github.com"

remote() {
    git -c credential.helper= -c "credential.helper=!gh auth git-credential" "$@"
}

code=0
remote ls-remote --exit-code --heads origin "refs/heads/$BRANCH" >/dev/null || code=$?
case $code in
0)
    remote fetch --quiet origin "refs/heads/$BRANCH:refs/remotes/origin/$BRANCH"
    git switch --quiet --force-create "$BRANCH" "refs/remotes/origin/$BRANCH"
    ;;
2) git switch --quiet --force-create "$BRANCH" ;; # the remote has no such branch
*)
    echo "error: cannot reach origin" >&2
    exit 1
    ;;
esac
