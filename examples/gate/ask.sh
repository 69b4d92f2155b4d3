#!/usr/bin/env bash
# Ask a release gate. action.yml sets the variables GATE_*. The exit status is the gate's: 0 accepted, 1 rejected,
# 2 halted, 3 bad input.
set -euo pipefail

each_line() { # print each line of the first argument that is not empty, after the second argument if there is one
  while IFS= read -r line; do
    [[ -z $line ]] || printf '%s\0' ${2:+"$2"} "$line"
  done <<<"$1"
}

arguments=(--ledger "$GATE_LEDGER" --improvement="$GATE_IMPROVEMENT" --name "${GATE_NAME:-}")
[[ -z ${GATE_KEY:-} ]] || arguments+=(--key "$GATE_KEY")
[[ -z ${GATE_SCORE:-} ]] || arguments+=(--score "$GATE_SCORE")
mapfile -d '' -t others < <(each_line "${GATE_NO_WORSE:-}" --no-worse)
mapfile -d '' -t new < <(each_line "$GATE_NEW")
mapfile -d '' -t incumbent < <(each_line "$GATE_INCUMBENT")
arguments+=("${others[@]}" "--$GATE_TOOL" "${new[@]}" --incumbent "${incumbent[@]}")

status=0
verdict=$(reusable-holdout gate ask "${arguments[@]}") || status=$?
echo "${verdict:-no verdict (status $status)}"
[[ -z ${GITHUB_OUTPUT:-} ]] || echo "verdict=${verdict%% *}" >>"$GITHUB_OUTPUT" # without the interval, which follows the word
exit "$status"
