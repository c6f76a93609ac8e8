#!/usr/bin/env bash
# Lanes use two devices, with four queue pairs each. Then the test removes one device during operations. The operations
# go on, and every value is right.
#   rails_test.sh TRIBUTARY
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
program=$1
[[ -n ${RDMA_VIRTUAL:-} ]] || { echo "this machine's devices are not ours to take away"; exit 77; }
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off TRIBUTARY_LANES=2 TRIBUTARY_PATH=auto TRIBUTARY_TUNING=off TRIBUTARY_RDMA_QUEUE_PAIRS=4 TRIBUTARY_RDMA_DEVICES=rxe0,rxe2
out=$(mktemp)
pairs_of() { rdma resource show qp | grep -c "link $1/.*type RC" || true; }

"$program" run --ranks 2 --aggregators 2 --levels 1 --lanes 2 -- "$program" perf all_reduce -b 1M -e 1M -n 40 -w 1 -c 1 > "$out" 2>&1 &
running=$!
for ((wait = 0; wait < 600; ++wait)); do
  if (($(pairs_of rxe0) >= 8 && $(pairs_of rxe2) >= 8)); then break; fi
  kill -0 "$running" 2>/dev/null || break
  sleep 0.1
done
first=$(pairs_of rxe0) second=$(pairs_of rxe2)
echo "queue pairs: $first on rxe0, $second on rxe2"
if ((first < 8 || second < 8)); then cat "$out"; exit 1; fi
sleep 1
rdma link delete rxe2 >/dev/null 2>&1 & # the command returns when every process that has opened the device has ended
status=0
wait "$running" || status=$?
cat "$out"
grep -q '^# Failovers *: [1-9]' "$out" || { echo "no lane has failed: the device went too late"; exit 1; }
exit "$status"
