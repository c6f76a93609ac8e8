#!/usr/bin/env bash
# The port with a sum on it, and a whole aggregator's data path, against testpmd, over net_memif on the same two cores, by turns in the same
# run. The same generator sends datagrams to testpmd and to the port as fast as they are taken, and counts what comes back; to testpmd once
# more with as many under way as the aggregator's children have (`windowed`). The aggregator has eight children that speak the packet protocol,
# whose contributions come one of each in turn, or (`in_rows`) a window of one child, then of the next.
# Huge pages are used where 512 MiB of them are free.
#   [DRIVER=net_af_packet|net_af_xdp] compare.sh BUILD [ROUNDS] [SECONDS] [PAYLOAD] [BURST]
# DRIVER: over a veth pair instead, in a network namespace of the run's own.
set -euo pipefail
build=${1:?which build folder} rounds=${2:-5} seconds=${3:-2} payload=${4:-1024} burst=${5:-64}
children=8 window=32 driver=${DRIVER:-net_memif}
if [[ $driver != net_memif && ${INSIDE:-} != yes ]]; then INSIDE=yes exec unshare --net "$0" "$@"; fi
bytes=$((payload + 64))  # with the protocol's header
mac=02:00:00:00:00:51
folder=$(mktemp -d)
server=
trap 'status=$?; ((status == 0)) || tail -n 5 "$folder"/*.log >&2; [[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
declare -A rates
huge=()
(($(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages) * 2 >= 512)) || huge=(--no-huge -m 256)
printf '%s; huge pages: %s; payload %s bytes + 64; %s\n' "$driver" "$([[ ${#huge[@]} == 0 ]] && echo yes || echo no)" "$payload" "$(uname -r)"

if [[ $driver != net_memif ]]; then
  ip link add server type veth peer name client
  ip link set server address $mac up
  ip link set client up
  for end in server client; do ethtool -K $end tx off rx off >/dev/null; done
fi
device() {
  if [[ $driver != net_memif ]]; then
    echo "${driver}0,iface=$1"
  else
    memif "$@"
  fi
}
memif() { echo "net_memif0,role=$1,socket-abstract=no,socket=$folder/$2.sock,bsize=2048${3:-}"; }
measure() {  # measure NAME: starts the load against whoever serves
  local rate wait
  for ((wait = 0; wait < 100; ++wait)); do
    if [[ -S $folder/$1.sock || $driver != net_memif ]]; then break; fi
    sleep 0.1
  done
  [[ $driver == net_memif ]] && sleep 0.2 || sleep 1.5
  local more=()
  if [[ $1 == aggregator || $1 == in_rows ]]; then
    [[ $1 == aggregator ]] || more=(rows)
    rate=$("$build/bench/dpdk/dpdk_children_bench" "$(device client "$1")" 0 "$seconds" "$children" "$window" "$payload" 10.9.0.1 10.9.0.2 7471 "$mac" "${more[@]}")
  else
    [[ $1 != windowed ]] || more=($((children * window)))
    rate=$("$build/bench/dpdk/dpdk_load_bench" "$(device client "$1")" 0 "$seconds" "$bytes" 10.9.0.1 10.9.0.2 7471 "$mac" "${more[@]}")
  fi
  rates[$1]+="$rate "
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
  rm -f "$folder/$1.sock"
}
for ((round = 0; round < rounds; ++round)); do
  for mode in testpmd windowed; do
    dpdk-testpmd --lcores '0@1,1@1' --in-memory --no-pci --no-telemetry "${huge[@]}" --vdev "$(device server "$mode" ",mac=$mac")" -- \
      --forward-mode=io --port-topology=loop --auto-start --stats-period=3600 --total-num-mbufs=8192 --burst=64 --txd=1024 --rxd=1024 >"$folder/testpmd.log" 2>&1 </dev/null &
    server=$!
    measure "$mode"
  done
  for mode in echo sum1 sum8; do
    "$build/bench/dpdk/dpdk_sum_bench" "$(device server "$mode" ",mac=$mac")" 10.9.0.2/24 7471 1 "$([[ $mode == echo ]] && echo 0 || echo "${mode#sum}")" "$burst" \
      >"$folder/$mode.log" 2>&1 &
    server=$!
    measure "$mode"
    cat "$folder/$mode.log"
  done
  for mode in aggregator in_rows; do
    "$build/bench/dpdk/dpdk_aggregator_bench" "$(device server "$mode" ",mac=$mac")" 10.9.0.2/24 7471 1 "$children" "$window" "$payload" \
      >"$folder/aggregator.log" 2>&1 &
    server=$!
    measure "$mode"
    cat "$folder/aggregator.log"
  done
done
median() { tr ' ' '\n' <<<"$1" | grep . | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
base=$(median "${rates[testpmd]}")
for name in testpmd windowed echo sum1 sum8 aggregator in_rows; do
  rate=$(median "${rates[$name]}")
  printf '%-10s median %s Mpackets/s  %s Gbit/s of payload  %s %% of testpmd  (%s)\n' "$name" "$rate" \
    "$(awk "BEGIN { printf \"%.2f\", $rate * $payload * 8 / 1000 }")" "$(awk "BEGIN { printf \"%.0f\", 100 * $rate / $base }")" "${rates[$name]}"
done
