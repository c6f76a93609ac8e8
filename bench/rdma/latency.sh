#!/usr/bin/env bash
# Shows the parts of the time of an 8-byte all-reduce over RDMA when processes share processors. It runs trees with
# several numbers of links and levels, ib_write_lat alone, and ib_write_lat beside two busy loops. With each all-reduce
# it prints the work of the processors.
#   tests/rdma/rdma-vm --hosts 4 --memory 3500 -- bench/rdma/latency.sh build/release
# On a machine with RDMA devices of its own: RDMA_HOSTS="ADDRESS ADDRESS" bench/rdma/latency.sh BUILD
#
# An all-reduce over a tree of L links sends 2 L messages. If processors are few, their work is the bound, and the
# all-reduce takes the time of 2 L messages. If each process has a processor, it takes the time of 2 x depth messages.
set -euo pipefail
program=$(realpath "$1")/client/cli/tributary
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off
read -r -a hosts <<< "$RDMA_HOSTS"
mapfile -t devices < <(basename -a /sys/class/infiniband/*)
gid=1 # index of the IPv4 address's GID in the virtual machine

write_latency() { # ITERATIONS
  ib_write_lat -F -d "${devices[0]}" -x $gid -s 8 -n "$1" >/dev/null 2>&1 &
  local server=$!
  sleep 3
  ib_write_lat -F -d "${devices[-1]}" -x $gid -s 8 -n "$1" "${hosts[0]}" | awk '/^ *8 / { print "  typical " $5 " us, 99 % " $8 " us" }'
  wait "$server"
}
spent() { awk '/^cpu / { print $2 + $3, $4, $7 + $8, $5 + $6 }' /proc/stat; }
all_reduce() { # RANKS AGGREGATORS LEVELS
  local before
  before=$(spent)
  "$program" run --ranks "$1" --aggregators "$2" ${3:+--levels "$3"} -- "$program" perf all_reduce -b 8 -e 8 -n 200 -w 5 2>/dev/null |
    awk '/^ +8 / { print "  " $6 " us out of place, " $10 " us in place, wrong: " $9 + $13 }'
  awk '{ printf "  in ticks, with start and end: user %d system %d softirq %d idle %d\n", $5 - $1, $6 - $2, $7 - $3, $8 - $4 }' \
    <<< "$before $(spent)"
}

echo 'ib_write_lat, 8 bytes, one way:'
write_latency 1000
echo 'the same beside two busy loops:'
(while :; do :; done) & one=$!
(while :; do :; done) & two=$!
write_latency 300
kill "$one" "$two"
echo '2 ranks, recursive doubling, 2 messages:'
TRIBUTARY_PATH=fallback all_reduce 2 0 ''
export TRIBUTARY_PATH=in-network
echo '2 ranks, 1 aggregator, 4 messages:'
all_reduce 2 1 1
echo '4 ranks, 1 aggregator, 8 messages:'
all_reduce 4 1 1
echo '4 ranks, 3 aggregators on 2 levels, 12 messages:'
all_reduce 4 3 2
