#!/usr/bin/env bash
# Eight ranks, three aggregators, two levels, over RDMA: one collective of each pattern, every value checked; then the same between the
# ranks alone. When all processes have ended, every RDMA object is gone that was not there before.
#   perf_test.sh TRIBUTARY
set -euo pipefail
program=$1
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off
resources() { rdma resource | sed 's/ cm_id.*mr/ mr/'; }

before=$(resources)
for collective in all_reduce broadcast reduce_scatter; do
  TRIBUTARY_PATH=in-network "$program" run --ranks 8 --aggregators 3 --levels 2 -- "$program" perf "$collective" -b 8 -e 131072 -f 128 -n 2 -w 1 -c 1
done
"$program" run --ranks 8 --aggregators 0 -- "$program" perf all_reduce -b 8 -e 131072 -f 128 -n 2 -w 1 -c 1
after=$(resources)
for ((wait = 0; wait < 50; ++wait)); do
  [[ $after == "$before" ]] && break
  sleep 0.1
  after=$(resources)
done
if [[ $after != "$before" ]]; then
  printf 'RDMA objects are left over. Before:\n%s\nafter:\n%s\n' "$before" "$after" >&2
  exit 1
fi
