#!/usr/bin/env bash
# A release loop: a version replaces the incumbent only if the gate accepts it. The loop gets accepted, rejected or
# halted, never a score, so it cannot overfit the labelled rows within the declared number of releases.
#
#     examples/release_gate.sh [folder]       (PYTHON=... to name the interpreter)
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$(mktemp -d)}
python=${PYTHON:-python}
holdout() { "$python" -m reusable_holdout "$@"; }

mkdir -p "$folder"
"$python" "$examples/release_gate_models.py" "$folder"
cd "$folder"

# Once, by the owner of the labels. The named improvement, 0.02, equals the tolerance, so an accepted version is certified
# to be no worse. The plan expects that two versions differ on an eighth of the rows (.35 squared); no verdict rests on it.
holdout gate init --ledger guard.db --labels labels.csv --id id --queries 20 --tolerance 0.02 --spread 0.35 >plan.txt

# At each release.
incumbent=v1
for version in v2 v3 v4 broken; do
  status=0
  verdict=$(holdout gate ask --ledger guard.db --predictions "$version.csv" --incumbent "$incumbent.csv" \
    --improvement 0.02 --name "$version less $incumbent" 2>problem.txt) || status=$?
  case $status in
    0) echo "$version against $incumbent: $verdict (status 0), released"; incumbent=$version ;;
    1) echo "$version against $incumbent: $verdict (status 1), $incumbent stays" ;;
    2) echo "$version against $incumbent: $verdict (status 2), fresh labels are needed"; break ;;
    *) echo "$version against $incumbent: no verdict (status $status): $(cat problem.txt)" ;;
  esac
done

# Everything that was learnt about the labels.
holdout history guard.db
