#!/bin/sh
# Sends decision logs with curl: one, then several as lines. Prints what is answered.
# usage: send.sh [URL of the API, http://127.0.0.1:4141/api/v1 by default]
set -eu
api=${1:-http://127.0.0.1:4141/api/v1}

# Any UUID of version 4 names a step.
new_id() { cat /proc/sys/kernel/random/uuid; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# One log: what the agent wanted, what it did, what came of it. Seven fields are required, all others are optional.
root=$(new_id)
curl --silent --show-error --fail-with-body "$api/decision-logs" \
  --header 'content-type: application/json' --header "authorization: Bearer ${LOOPBREAKER_TOKEN:-}" \
  --data @- <<LOG
{
  "meta": {"trace_id": "$root", "timestamp": "$(now)", "session_id": "example-curl"},
  "identity": {"agent_id": "builder-1", "agent_type": "coder", "capability_version": "1.4.0"},
  "cognition": {"intent": "build the project"},
  "action": {"tool_call": "make", "tool_input": {"target": "all"}, "tool_output_summary": "2 errors", "status": "failure"}
}
LOG
echo

# Several: one per line, each behind the step that led to it. Every line has its own answer.
for attempt in 1 2 3; do
  printf '{"meta":{"trace_id":"%s","parent_step_id":"%s","timestamp":"%s"},' "$(new_id)" "$root" "$(now)"
  printf '"identity":{"agent_id":"builder-1","agent_type":"coder","capability_version":"1.4.0"},'
  printf '"cognition":{"intent":"repair file %s"},"action":{"tool_call":"edit","status":"success"}}\n' "$attempt"
done | curl --silent --show-error --fail-with-body "$api/decision-logs" \
  --header 'content-type: application/x-ndjson' --header "authorization: Bearer ${LOOPBREAKER_TOKEN:-}" \
  --data-binary @-
echo
