#!/usr/bin/env bash
# Run the plan on its branch and write the report. Ends with 0 whatever came of the run: the last step of the action
# passes its exit code on, after the report is uploaded and the work is published.
# PLAN, AGENT, ARGS. The words of ARGS are split by xargs, which knows quotes and expands nothing.
set -euo pipefail

report=$RUNNER_TEMP/ralph-report
mkdir -p "$report"
plan=(${PLAN:+-f "$PLAN"})
export RALPH_STATE_HOME=$RUNNER_TEMP/ralph-state
export RALPH_BRANCH_AUTO_CREATE=false # the branch is there: branch.sh switched to it

words=()
while IFS= read -r -d '' word; do
    words+=("$word")
done < <(printf '%s' "$ARGS" | xargs -r printf '%s\0')

code=0
ralph run --plain --trust "${plan[@]}" ${AGENT:+--agent "$AGENT"} "${words[@]}" || code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"

if ralph report "${plan[@]}" --json >"$report/report.json"; then
    ralph report "${plan[@]}" --markdown "$report/report.md"
    ralph report "${plan[@]}" --html "$report/report.html"
    cat "$report/report.md" >>"$GITHUB_STEP_SUMMARY"
    run=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])' <"$report/report.json")
    cp -R "$RALPH_STATE_HOME"/*/runs/"$run" "$report/run" || true
    python3 -c 'import json, sys; found = json.load(sys.stdin)
for name in ("done", "total", "branch"): print(f"{name}={found[name]}")' <"$report/report.json" >>"$GITHUB_OUTPUT"
else
    rm "$report/report.json"
fi
