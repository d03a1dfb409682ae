#!/usr/bin/env bash
# Push the branch and open a pull request with the report, or comment on the one that is there.
# MODE (open, comment, none), PLAN, BRANCH, BASE, NUMBER (of the pull request that started the workflow), GH_TOKEN.
set -euo pipefail

# The agent has ended: from here on git may use the token.
gh auth setup-git

plan=(${PLAN:+-f "$PLAN"})
export RALPH_STATE_HOME=$RUNNER_TEMP/ralph-state

case $MODE in
none)
    exit 0
    ;;
comment)
    if [ -z "$NUMBER" ]; then
        echo "error: pull-request: comment needs a workflow that a pull request started" >&2
        exit 1
    fi
    url=$(ralph pr "${plan[@]}" --comment "$NUMBER")
    ;;
open)
    if ! ralph report "${plan[@]}" --json | python3 -c 'import json, sys
stories = json.load(sys.stdin)["stories"]
sys.exit(not any(not commit["earlier_run"] for story in stories for commit in story["commits"]))'; then
        echo "this run accepted no story, so there is nothing new for a pull request"
        exit 0
    fi
    open=$(gh pr list --head "$BRANCH" --state open --json url --jq '.[0].url // empty')
    if [ -n "$open" ]; then
        git push --quiet origin "refs/heads/$BRANCH:refs/heads/$BRANCH"
        url=$(ralph pr "${plan[@]}" --comment "$open")
    else
        url=$(ralph pr "${plan[@]}" --push ${BASE:+--base "$BASE"})
    fi
    ;;
*)
    echo "error: pull-request is $MODE; it must be open, comment or none" >&2
    exit 1
    ;;
esac
echo "url=$url" >>"$GITHUB_OUTPUT"
echo "$url"
