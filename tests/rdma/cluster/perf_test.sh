#!/usr/bin/env bash
# Runs one collective of each pattern over RDMA, with eight ranks and three aggregators on two levels, and checks every
# value; then does the same only between the ranks.
#   perf_test.sh TRIBUTARY
set -euo pipefail
program=$1
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off

for collective in all_reduce broadcast reduce_scatter; do
  TRIBUTARY_PATH=in-network "$program" run --ranks 8 --aggregators 3 --levels 2 -- "$program" perf "$collective" -b 8 -e 131072 -f 16384 -n 1 -w 0 -c 1
done
"$program" run --ranks 8 --aggregators 0 -- "$program" perf all_reduce -b 8 -e 131072 -f 16384 -n 1 -w 0 -c 1
