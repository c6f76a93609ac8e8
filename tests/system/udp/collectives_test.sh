#!/usr/bin/env bash
# One collective of each pattern through trees over UDP, every value checked, then the same between the ranks alone; with what
# TRIBUTARY_TEST_PACKET_FAULTS does to every packet that a process sends.
#   collectives_test.sh TRIBUTARY
set -euo pipefail
program=$1
export TRIBUTARY_TRANSPORT=udp TRIBUTARY_LOCAL=off

for collective in all_reduce broadcast reduce_scatter; do
  "$program" run --ranks 4 --aggregators 3 --levels 2 -- "$program" perf "$collective" -b 8 -e 524288 -f 256 -n 3 -w 1 -c 1 | tee /dev/stderr | grep -q '^# Out of bounds values : 0 OK'
done
"$program" run --ranks 4 --aggregators 0 -- "$program" perf all_reduce -b 8 -e 524288 -f 256 -n 3 -w 1 -c 1 | tee /dev/stderr | grep -q '^# Out of bounds values : 0 OK'
