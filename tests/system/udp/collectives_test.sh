#!/usr/bin/env bash
# Runs one collective of each pattern through trees over UDP, checks every value, and does the same only between the
# ranks. TRIBUTARY_TEST_PACKET_FAULTS says which faults the packets of every process have.
#   collectives_test.sh TRIBUTARY
set -euo pipefail
program=$1
export TRIBUTARY_TRANSPORT=udp TRIBUTARY_LOCAL=off

for collective in all_reduce broadcast reduce_scatter; do
  "$program" run --ranks 4 --aggregators 3 --levels 2 -- "$program" perf "$collective" -b 8 -e 524288 -f 256 -n 3 -w 1 -c 1 | tee /dev/stderr | grep -q '^# Out of bounds values : 0 OK'
done
"$program" run --ranks 4 --aggregators 0 -- "$program" perf all_reduce -b 8 -e 524288 -f 256 -n 3 -w 1 -c 1 | tee /dev/stderr | grep -q '^# Out of bounds values : 0 OK'
