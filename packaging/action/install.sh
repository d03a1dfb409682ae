#!/usr/bin/env bash
# Install Ralph into an environment of its own, so that the project's Python stays as it is.
# PYTHON, VERSION (or `.`: this repository), EXTRAS (comma-separated).
set -euo pipefail

environment=$RUNNER_TEMP/ralph-python
"$PYTHON" -m venv "$environment"
if [ "$VERSION" = . ]; then
    wanted=$GITHUB_ACTION_PATH
else
    wanted=ralph-loop-engine
fi
wanted=$wanted${EXTRAS:+[$EXTRAS]}
[ "$VERSION" = . ] || wanted=$wanted==$VERSION
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$wanted"
mkdir -p "$RUNNER_TEMP/ralph-bin"
ln -sf "$environment/bin/ralph" "$RUNNER_TEMP/ralph-bin/ralph"
echo "$RUNNER_TEMP/ralph-bin" >>"$GITHUB_PATH"
"$RUNNER_TEMP/ralph-bin/ralph" --version
