#!/usr/bin/env bash
# An aggregator is killed during operations over sealed RDMA. The operations go on, the trees come back, and every value
# is right.
#   sealed_failover_test.sh TRIBUTARY
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
program=$1
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_SECURITY=encrypt TRIBUTARY_LOCAL=off TRIBUTARY_PATH=auto TRIBUTARY_TUNING=off TRIBUTARY_TIMEOUT=300
out=$(mktemp)
pairs() { rdma resource show qp | grep -c 'type RC' || true; }

"$program" run --ranks 2 --aggregators 2 --levels 1 --lanes 2 -- "$program" perf all_reduce -b 1M -e 1M -n 30 -w 1 -c 1 > "$out" 2>&1 &
running=$!
for ((wait = 0; wait < 1200; ++wait)); do
  if (($(pairs) >= 8)); then break; fi
  kill -0 "$running" 2>/dev/null || break
  sleep 0.1
done
sleep 3
kill -9 "$(pgrep -P "$running" -f tributary-aggregator | head -n 1)"
status=0
wait "$running" || status=$?
cat "$out"
grep -q '^# Failovers *: [1-9]' "$out" || { echo "no lane has failed: the aggregator went too late"; exit 1; }
grep -q '^# Out of bounds values : 0 OK' "$out"
exit "$status"
