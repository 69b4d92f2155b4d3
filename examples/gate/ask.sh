#!/usr/bin/env bash
# Asks a release gate as the variables GATE_* say: action.yml sets them. Its status is the gate's: 0 accepted, 1
# rejected, 2 halted, 3 bad input.
set -euo pipefail

each_line() { # of the first argument that is not empty, as an option of its own or after one
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
verdict=$(reusable-holdout gate "${arguments[@]}") || status=$?
echo "${verdict:-no verdict (status $status)}"
[[ -z ${GITHUB_OUTPUT:-} ]] || echo "verdict=${verdict%% *}" >>"$GITHUB_OUTPUT" # the word alone: its interval stands behind it
exit "$status"
