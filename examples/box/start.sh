#!/bin/sh
# Make a box and run it as a user of its own, with nothing but setpriv; by root.
#
#   BOX=/srv/box BOX_UID=990 AGENT_UID=1000 LABELS=labels.csv sh start.sh
#
# The labels must be readable by BOX_UID, and by nobody else; BOX's parent must be BOX_UID's or root's.
set -eu
: "${BOX:?where the box is to be}" "${BOX_UID:?the user of the box}" "${AGENT_UID:?the user who may ask}"
PYTHON=${PYTHON:-python3}

as_box() {
    # an environment of our own: nothing of who calls this reaches the box
    setpriv --reuid="$BOX_UID" --regid="$BOX_UID" --clear-groups --inh-caps=-all \
        env -i PATH=/usr/bin:/bin HOME=/nonexistent PYTHONPATH="${PYTHONPATH:-}" REUSABLE_HOLDOUT_REGISTRY=off \
        "$PYTHON" -m reusable_holdout box "$@"
}

cd /
[ -d "$BOX/private" ] || as_box init "$BOX" --labels "${LABELS:?labels}" ${PLAN:---queries 500 --tolerance 0.1}
exec setpriv --reuid="$BOX_UID" --regid="$BOX_UID" --clear-groups --inh-caps=-all \
    env -i PATH=/usr/bin:/bin HOME=/nonexistent PYTHONPATH="${PYTHONPATH:-}" REUSABLE_HOLDOUT_REGISTRY=off \
    "$PYTHON" -m reusable_holdout box serve "$BOX" --peer-uid "$AGENT_UID"
