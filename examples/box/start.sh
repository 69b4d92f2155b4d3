#!/bin/sh
# Make a box, and serve it as a user of its own. It needs setpriv, and runs as root.
#
#   BOX=/srv/box BOX_UID=990 AGENT_UID=1000 LABELS=labels.csv sh start.sh
#
# Only BOX_UID may be able to read the labels. The folder above BOX must belong to BOX_UID or root.
set -eu
: "${BOX:?folder of the box}" "${BOX_UID:?user of the box}" "${AGENT_UID:?user who may ask}"
PYTHON=${PYTHON:-python3}

as_box() {
    # a fresh environment: nothing of the caller's reaches the box
    setpriv --reuid="$BOX_UID" --regid="$BOX_UID" --clear-groups --inh-caps=-all \
        env -i PATH=/usr/bin:/bin HOME=/nonexistent PYTHONPATH="${PYTHONPATH:-}" REUSABLE_HOLDOUT_REGISTRY=off \
        "$PYTHON" -m reusable_holdout box "$@"
}

cd /
[ -d "$BOX/private" ] || as_box init "$BOX" --labels "${LABELS:?labels}" ${PLAN:---queries 500 --tolerance 0.1}
exec setpriv --reuid="$BOX_UID" --regid="$BOX_UID" --clear-groups --inh-caps=-all \
    env -i PATH=/usr/bin:/bin HOME=/nonexistent PYTHONPATH="${PYTHONPATH:-}" REUSABLE_HOLDOUT_REGISTRY=off \
    "$PYTHON" -m reusable_holdout box serve "$BOX" --peer-uid "$AGENT_UID"
