#!/usr/bin/env bash
# Measures all-reduce over RDMA beside perftest's figures for the same devices, in the same run.
#   tests/rdma/rdma-vm --hosts 4 --memory 3072 -- bench/rdma/compare.sh build/release
# On a machine with RDMA devices of its own, without the virtual machine: RDMA_HOSTS="ADDRESS ADDRESS" bench/rdma/compare.sh BUILD
#
# How to read the figures: in the virtual machine the processors do the devices' work, and every byte that moves costs
# time of the same few cores. A tree with 4 ranks, 2 leaves and a root moves a tensor over 6 links, up and down, which
# is 12 times its size; ib_write_bw moves it once. So in the virtual machine the bound is ib_write_bw / 12. Where links
# are independent, it is ib_write_bw itself. The bound of the latency is 2 x depth x ib_write_lat, with as many cores as
# processes.
set -euo pipefail
program=$(realpath "$1")/client/cli/tributary
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off TRIBUTARY_PATH=in-network
read -r -a hosts <<< "$RDMA_HOSTS"
device_of() { # prints the device whose GIDs hold this address
  local device
  for device in /sys/class/infiniband/*; do
    if grep -qi "$(printf 'ffff:%02x%02x:%02x%02x' ${1//./ })" "$device"/ports/*/gids/* 2>/dev/null; then basename "$device"; return; fi
  done
}
first=$(device_of "${hosts[0]}") last=$(device_of "${hosts[1]}")

perftest() { # PROGRAM OPTION...
  local tool=$1
  shift
  "$tool" -F -d "$first" "$@" >/dev/null 2>&1 &
  sleep 2
  "$tool" -F -d "$last" "$@" "${hosts[0]}" | awk '/^ *[0-9]+ +[0-9]+ / { print }'
  wait
}
gid=1 # index of the IPv4 address's GID in the virtual machine
echo "ib_write_bw (bytes, iterations, peak, average MB/s, Mmsg/s):"
perftest ib_write_bw -x $gid -s 65536 -n 1000
echo "ib_write_lat (bytes, iterations, min, max, typical us ...):"
perftest ib_write_lat -x $gid -s 8 -n 1000
"$program" run --ranks 4 --aggregators 3 --levels 2 -- "$program" perf all_reduce -b 8 -e 8 -n 50 -w 5
"$program" run --ranks 4 --aggregators 3 --levels 2 -- "$program" perf all_reduce -b 1M -e 16M -f 16 -n 3 -w 1
