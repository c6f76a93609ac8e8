#!/usr/bin/env bash
# Somebody on the aggregator's network floods its device, which DPDK drives, with everything that is wrong: garbage, made-up packets, spoofed
# groups, replays, fragments, wrong checksums, ARP and pings. It is counted and dropped, the ranks' group computes right results and stays on
# its tree, and loses no more speed than the port and the cores do.
#   hostile_test.sh MANAGER AGGREGATOR CHAOS_RANK [RANKS [COUNT]]; STRANGER in the environment is the program that floods
# TRIBUTARY_HOSTILE_SECONDS (1: of each measurement), TRIBUTARY_HOSTILE_RATE (20000: frames a second)
set -euo pipefail
# shellcheck source=tests/dpdk/cluster/cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
seconds=${TRIBUTARY_HOSTILE_SECONDS:-1} rate=${TRIBUTARY_HOSTILE_RATE:-20000}

within 30 in_network || fail 'the ranks do not get to the tree'
first=$(rounds)
within 30 at_least $((first + 5)) || fail 'no rounds on the tree'
# The aggregator's end of its wire on this side: what is sent there passes no bridge, which would look at it.
mac=$(ip -o link show agg-wire | sed "s/.*link.ether \([0-9a-f:]*\).*/\1/")
# All that the aggregator and its device have dropped.
dropped() {
  local sum=0 name
  for name in packets_rejected packets_stray packets_forged packets_unsealed packets_repeated frames_malformed frames_foreign; do
    sum=$((sum + $(value "dpdk_${name}_total")))
  done
  echo $((sum + $(value dpdk_control_ignored_total) + $(value dpdk_answers_limited_total)))
}
# speed NAME COMMAND...: rounds while it runs, in thousandths a second
speed() {
  local before begin name=$1
  shift
  before=$(rounds) begin=$(date +%s%N)
  "$@" >"$folder/told" || fail "$name: $(<"$folder/told")"
  result=$((($(rounds) - before) * 1000000000000 / ($(date +%s%N) - begin)))
}
speed alone sleep "$seconds"
quiet=$result
((quiet > 0)) || fail 'no rounds'
printf '%-16s %8d.%03d rounds a second\n' alone $((quiet / 1000)) $((quiet % 1000))

# What is counted: the network may lose some of a flood before the device has it, and fragments wait for ever in the kernel, which puts them
# together for sockets of this driver's kind.
counted=' garbage wrong_checksum guessed_name udp_checksum ip_checksum options '
[[ ${TRIBUTARY_PACKET_SECURITY:-off} == off ]] || counted+='unsealed changed replay '
for kind in garbage wrong_checksum guessed_name unsealed foreign_group wrong_seal guessed_end replay changed udp_checksum ip_checksum fragment options arp echo; do
  # In clear, who has seen a connection's name can speak for it: that is what seals are for.
  [[ $kind != unsealed && $kind != changed || $counted == *" $kind "* ]] || continue
  before=$(dropped)
  speed "$kind" "$STRANGER" agg-port 10.6.0.1 "$mac" 7471 "$kind" "$seconds" "$rate"
  sent=$(<"$folder/told")
  drops=$(($(dropped) - before))
  printf '%-16s %8d.%03d rounds a second, %d sent, %d dropped and counted\n' "$kind" $((result / 1000)) $((result % 1000)) "$sent" "$drops"
  ((sent > 0)) || fail "$kind: nothing was sent"
  ((result > quiet / 5)) || fail "$kind: the group is slowed down"
  in_network || fail "$kind: the group lost its tree"
  [[ $counted != *" $kind "* ]] || ((drops > sent / 4)) || fail "$kind: not counted"
  alive
done
! grep -q ' fallback ' <(grep '^round' "$folder/rank0.out" | tail -n +"$first") || fail 'a round went by fallback'
speed after sleep "$seconds"
printf '%-16s %8d.%03d rounds a second\n' 'alone again' $((result / 1000)) $((result % 1000))
((result > quiet / 3)) || fail 'the group stays slow'
touch "$folder/stop"
for p in "${pids[@]}"; do wait "$p" || fail 'a rank has failed'; done
