#!/usr/bin/env bash
# Compares testpmd with the DPDK port (alone, and with a sum) and with a whole aggregator's data path, over net_memif
# on the same two cores, by turns in one run. The same generator sends datagrams to testpmd and to the port as fast
# as they take them, and counts the datagrams that come back. The generator also runs against testpmd with as many
# datagrams under way as the aggregator's children have (`windowed`). And it runs against testpmd's `csum` engine
# (`testpmd_csum`). This engine parses each frame and reads the payload for UDP's checksum, as the end of a connection
# must if the device does not. The aggregator has eight children that speak the packet protocol. They send one
# contribution of each child in turn, or (`in_rows`) a window of one child, then of the next. Beside each rate the table
# has the cycles that a packet cost the serving side, without idle turns. The script uses huge pages if 512 MiB of them
# are free.
#   [DRIVER=net_af_packet|net_af_xdp] [MEMIF=copying|lent] [ONLY="testpmd aggregator ..."] compare.sh BUILD [ROUNDS] [SECONDS] [PAYLOAD] [BURST]
# With DRIVER it runs over a veth pair instead, in a separate network namespace.
# With MEMIF=lent the serving side, testpmd included, is a memif client that lends its buffers (zero-copy=yes), so the
# generator's end copies in both directions.
set -euo pipefail
build=${1:?which build folder} rounds=${2:-5} seconds=${3:-2} payload=${4:-1024} burst=${5:-64}
children=8 window=32 driver=${DRIVER:-net_memif} memif=${MEMIF:-copying}
read -ra programs <<<"${ONLY:-testpmd windowed testpmd_csum echo sum1 sum8 aggregator in_rows}"
if [[ $driver != net_memif && ${INSIDE:-} != yes ]]; then INSIDE=yes exec unshare --net "$0" "$@"; fi
bytes=$((payload + 64))  # the protocol's header included
mac=02:00:00:00:00:51
folder=$(mktemp -d)
server= generator=
stop() { [[ -z $1 ]] || kill "$1" 2>/dev/null || true; }
trap 'status=$?; ((status == 0)) || tail -n 5 "$folder"/*.log >&2; stop "$server"; stop "$generator"; rm -rf "$folder"' EXIT
declare -A rates spent
huge=(--in-memory)
(($(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages) * 2 >= 512)) || huge=(--no-huge -m 256 --no-shconf)
printf '%s; huge pages: %s; payload %s bytes + 64; %s\n' "$driver$([[ $driver != net_memif ]] || echo ", $memif")" \
  "$([[ ${huge[0]} == --in-memory ]] && echo yes || echo no)" "$payload" "$(uname -r)"

if [[ $driver != net_memif ]]; then
  ip link add server type veth peer name client
  ip link set server address $mac up
  ip link set client up
  for end in server client; do ethtool -K $end tx off rx off >/dev/null; done
fi
device() {  # device END NAME: prints the device of an end; END is `serves` or `loads`
  if [[ $driver != net_memif ]]; then
    [[ $1 == serves ]] && echo "${driver}0,iface=server" || echo "${driver}0,iface=client"
    return
  fi
  local role=server more=
  if [[ $memif == lent ]]; then
    [[ $1 == loads ]] || { role=client more=,zero-copy=yes; }
  else
    [[ $1 == serves ]] || role=client
  fi
  [[ $1 == loads ]] || more+=,mac=$mac
  echo "net_memif0,role=$role,socket-abstract=no,socket=$folder/$2.sock,bsize=2048$more"
}
load() {  # load NAME: starts the generator
  local more=()
  if [[ $1 == aggregator || $1 == in_rows ]]; then
    [[ $1 == aggregator ]] || more=(rows)
    exec "$build/bench/dpdk/dpdk_children_bench" "$(device loads "$1")" 0 "$seconds" "$children" "$window" "$payload" 10.9.0.1 10.9.0.2 7471 "$mac" "${more[@]}"
  fi
  [[ $1 != windowed ]] || more=($((children * window)))
  exec "$build/bench/dpdk/dpdk_load_bench" "$(device loads "$1")" 0 "$seconds" "$bytes" 10.9.0.1 10.9.0.2 7471 "$mac" "${more[@]}"
}
serve() {  # serve NAME: starts the program that the generator loads
  local at
  at=$(device serves "$1")
  case $1 in
    testpmd | testpmd_csum | windowed)
      local file=() mode=io
      [[ $1 != testpmd_csum ]] || mode=csum
      [[ $memif != lent ]] || file=(--single-file-segments)
      exec dpdk-testpmd --lcores '0@1,1@1' --no-pci --no-telemetry "${huge[@]}" "${file[@]}" --vdev "$at" -- --forward-mode=$mode \
        --port-topology=loop --auto-start --stats-period=3600 --total-num-mbufs=16384 --burst=64 --txd=1024 --rxd=1024 --record-core-cycles
      ;;
    echo) exec "$build/bench/dpdk/dpdk_sum_bench" "$at" 10.9.0.2/24 7471 1 0 "$burst" ;;
    sum*) exec "$build/bench/dpdk/dpdk_sum_bench" "$at" 10.9.0.2/24 7471 1 "${1#sum}" "$burst" ;;
    *) exec "$build/bench/dpdk/dpdk_aggregator_bench" "$at" 10.9.0.2/24 7471 1 "$children" "$window" "$payload" ;;
  esac
}
until_there() {  # until_there SECONDS TEST...: repeats TEST until it succeeds
  local tries
  for ((tries = $1 * 20; tries > 0; --tries)); do
    "${@:2}" && return
    sleep 0.05
  done
  return 1
}
told() { [[ -s $folder/load.log ]] || ! kill -0 "$generator" 2>/dev/null; }
measure() {  # measure NAME: runs both ends once
  # memif's server must exist before its client.
  local first=serve second=load
  [[ $memif != lent || $driver != net_memif ]] || first=load second=serve
  rm -f "$folder"/*.log
  start_$first "$1"
  [[ $driver != net_memif ]] || until_there 10 test -S "$folder/$1.sock"
  [[ $driver == net_memif ]] && sleep 0.2 || sleep 1.5
  start_$second "$1"
  until_there $((${seconds%.*} + 15)) told
  stop "$server"
  wait "$server" 2>/dev/null || true
  stop "$generator"
  wait "$generator" 2>/dev/null || true
  server= generator=
  rates[$1]+="$(tail -n 1 "$folder/load.log") "
  spent[$1]+="$(grep -o 'cycles/packet=[0-9]*\|[0-9]* cycles a packet received\|all [0-9]* cycles' "$folder/serve.log" | grep -o '[0-9]*' | tail -n 1) "
  [[ $1 == testpmd* || $1 == windowed ]] || cat "$folder/serve.log"
  rm -f "$folder/$1.sock"
}
start_serve() { serve "$1" >"$folder/serve.log" 2>&1 </dev/null & server=$!; }
start_load() { load "$1" >"$folder/load.log" 2>"$folder/load_error.log" & generator=$!; }
for ((round = 0; round < rounds; ++round)); do
  for program in "${programs[@]}"; do measure "$program"; done
done
median() { tr ' ' '\n' <<<"$1" | grep . | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
base=$(median "${rates[${programs[0]}]}")
for name in "${programs[@]}"; do
  rate=$(median "${rates[$name]}")
  printf '%-10s median %s Mpackets/s  %s Gbit/s of payload  %s %% of %s  (%s)  %s busy cycles a packet (%s)\n' "$name" "$rate" \
    "$(awk "BEGIN { printf \"%.2f\", $rate * $payload * 8 / 1000 }")" "$(awk "BEGIN { printf \"%.0f\", 100 * $rate / $base }")" \
    "${programs[0]}" "${rates[$name]% }" "$(median "${spent[$name]}")" "${spent[$name]% }"
done
