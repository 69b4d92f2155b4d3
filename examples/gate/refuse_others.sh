#!/usr/bin/env bash
# Refuse every job but the gate's on the runner that has the ledger. A pull request can change `runs-on` of a workflow
# that it starts, and so choose this runner. Name this file in the runner's own .env file, outside of any checkout:
#
#     ACTIONS_RUNNER_HOOK_JOB_STARTED=/srv/gate/refuse_others.sh
#     GATE_WORKFLOW=owner/name/.github/workflows/gate.yml@refs/heads/main
#
# The runner calls it before the first step of each job, and a status that is not 0 ends the job.
set -euo pipefail

if [[ -z ${GATE_WORKFLOW:-} || ${GITHUB_WORKFLOW_REF:-} != "$GATE_WORKFLOW" || ${GITHUB_EVENT_NAME:-} != workflow_run ]]; then
  echo "this runner takes only the release gate's job; got another workflow or event" >&2
  exit 1
fi
