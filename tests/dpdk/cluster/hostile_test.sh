#!/usr/bin/env bash
# A stranger on the aggregator's network floods its device, which DPDK drives, with every kind of wrong frame: garbage,
# made-up packets, spoofed groups, replays, fragments, wrong checksums, ARP, pings, forged ICMP errors, and connections
# that open correctly and are never used. At least three groups are on the aggregator's two workers: two or more at the
# flooded worker, and one at the other worker. The aggregator counts and drops all these frames. All groups compute
# right results, stay on their trees, and lose no more speed than the flood's share of the frames that the device takes,
# as far as a test can measure this on a machine where the flood itself uses a core.
#   hostile_test.sh MANAGER AGGREGATOR CHAOS_RANK [RANKS [COUNT]]; STRANGER in the environment is the program that floods
# TRIBUTARY_HOSTILE_MILLISECONDS (400): length of each measurement; TRIBUTARY_HOSTILE_RATE (20000): frames a second;
# some kinds also come as fast as possible
set -euo pipefail
most=5  # jobs: so many that one worker rarely has all of them
export TRIBUTARY_TEST_WORKERS=2 TRIBUTARY_TEST_JOBS=$most TRIBUTARY_TEST_START_JOBS=1
# shellcheck source=tests/dpdk/cluster/cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh" "$1" "$2" "$3" "${4:-udp}" "${5:-$((2 * most))}"
milliseconds=${TRIBUTARY_HOSTILE_MILLISECONDS:-400} rate=${TRIBUTARY_HOSTILE_RATE:-20000}

seconds=$((milliseconds / 1000)).$(printf '%03d' $((milliseconds % 1000)))

# ---- groups on both workers. lanes: prints lines of group and worker
lanes() { curl -s http://127.0.0.1:7472/lanes | python3 -c 'import json, sys
for lane in json.load(sys.stdin)["lanes"]: print(lane["group"], lane["worker"])'; }
at_worker() { lanes | grep -c " $1\$" || true; }
all_in_network() { local j; for ((j = 0; j < jobs; ++j)); do in_network "$j" || return 1; done; }
two_and_one() { (($(at_worker 0) >= 1 && $(at_worker 1) >= 1 && $(at_worker 0) + $(at_worker 1) >= 3)); }
within 60 all_in_network || fail 'the ranks do not get to the tree'
until two_and_one || ((jobs == most)); do
  start_job
  within 60 all_in_network || fail 'the ranks do not get to the tree'
done
if ! two_and_one; then  # the script runs once more, in other namespaces
  ((${HOSTILE_TRIES:=0} < 5)) || fail 'all groups are at one worker'
  kill "${pids[@]}" "$aggregator_pid"
  rm -rf "$folder"
  exec env HOSTILE_TRIES=$((HOSTILE_TRIES + 1)) DPDK_CLUSTER_INSIDE=no "$0" "$@"
fi
flooded=$(($(at_worker 1) >= $(at_worker 0) ? 1 : 0))
group=$(lanes | grep " $flooded\$" | head -n 1 | cut -d' ' -f1)
port=$("$STRANGER" 10.6.0.1 7471 "$group" 0) || fail 'the door names no worker'
printf '%d groups at worker 0, %d at worker 1; worker %d, at port %d, is flooded\n' "$(at_worker 0)" "$(at_worker 1)" "$flooded" "$port"

# The stranger sends at the aggregator's end of the wire, because frames there pass no bridge, which would filter them.
mac=$(ip -o link show agg-wire | sed "s/.*link.ether \([0-9a-f:]*\).*/\1/")
# metrics: reads at once how many frames the aggregator and its device have dropped or answered themselves, and how many
# the device has taken
metrics() {
  curl -s http://127.0.0.1:7472/metrics | awk '
    /^tributary_aggregator_dpdk_(packets_(rejected|stray|forged|unsealed|repeated)|frames_dropped|frames_control)_total/ { counted += $2 }
    /^tributary_aggregator_dpdk_device_received_packets_total/ { taken += $2 }
    END { printf "%d %d\n", counted, taken }'
}
# speed COMMAND...: while the command runs, measures the rounds of each job in thousandths a second (`speeds`), and
# frames a second (`seen` and `taken`)
speed() {
  local begin before=() j counted_before taken_before counted_after taken_after time
  for ((j = 0; j < jobs; ++j)); do before+=("$(rounds "$j")"); done
  read -r counted_before taken_before < <(metrics)
  begin=$(date +%s%N)
  "$@" >"$folder/told" || fail "$*: $(<"$folder/told")"
  time=$((($(date +%s%N) - begin) / 1000))
  speeds=()
  for ((j = 0; j < jobs; ++j)); do speeds+=($((($(rounds "$j") - before[j]) * 1000000000 / time))); done
  read -r counted_after taken_after < <(metrics)
  seen=$(((counted_after - counted_before) * 1000000 / time)) taken=$(((taken_after - taken_before) * 1000000 / time))
}
tell() {
  local name=$1 j line=
  for ((j = 0; j < jobs; ++j)); do line+=$(printf ' %5d.%d' $((speeds[j] / 1000)) $((speeds[j] % 1000 / 100))); done
  printf '%-20s rounds a second:%s; %d frames a second sent, %d taken, %d counted\n' "$name" "$line" "$sent" "$taken" "$seen"
}

# Measures without a flood. The test compares only measurements directly after each other, and repeats a measurement
# that was too slow, because other processes also use this machine.
alone() {
  local j
  sent=0
  speed sleep "$seconds"
  quiet=("${speeds[@]}") quiet_taken=$taken
  for ((j = 0; j < jobs; ++j)); do ((quiet[j] > 0)) || return 1; done
}
within 20 alone || fail 'no rounds'
tell alone
# The part of a flood at full speed that the device takes.
speed "$STRANGER" agg-port 10.6.0.1 "$mac" "$port" garbage "$seconds" 0
sent=$(($(<"$folder/told") * 1000 / milliseconds))
tell 'garbage, all out'
capacity=$((taken > quiet_taken + 1 ? taken : quiet_taken + 1))

# slow_job KIND RATE: floods, and finds the first job that is slower than allowed; -1 if no job is
slow_job() {
  local j share
  within 20 alone || fail "$1: no rounds before"
  speed "$STRANGER" agg-port 10.6.0.1 "$mac" "$port" "$1" "$seconds" "$2"
  sent=$(($(<"$folder/told") * 1000 / milliseconds)) slow=-1
  # The flood's part of the frames that the device can take, in thousandths. Even a flood at full speed leaves a part
  # for other senders.
  share=$(((taken > quiet_taken ? taken - quiet_taken : 0) * 1000 / capacity))
  ((share <= 900)) || share=900
  for ((j = 0; j < jobs; ++j)); do ((speeds[j] * 3 > quiet[j] * (1000 - share) / 1000)) || slow=$j; done
}
# check KIND RATE: floods, and fails if a job is slower than allowed
check() {
  local kind=$1 j attempt
  for attempt in 1 2 3 4; do
    slow_job "$kind" "$2"
    ((slow >= 0)) || break
  done
  tell "$kind$( (($2 > 0)) || echo ', all out')"
  ((slow < 0)) || fail "$kind: job $slow is slower by more than the flood's part of the device: alone ${quiet[slow]} thousandths of a round a second"
  ((sent > 0)) || fail "$kind: nothing was sent"
  for ((j = 0; j < jobs; ++j)); do in_network "$j" || fail "$kind: job $j lost its tree"; done
  # The frames that the device took are also those of the jobs, which may be most of them.
  [[ $counted != *" $kind "* ]] || ((seen > (sent < taken ? sent : taken) / 10)) || fail "$kind: not counted"
  alive
}
# Look at the counts: the network may lose frames of a flood before the device gets them, and fragments wait for ever in
# the kernel, which joins them for sockets of this driver's kind.
counted=' garbage wrong_checksum guessed_name udp_checksum ip_checksum options arp echo frag_needed unreachable '
[[ ${TRIBUTARY_PACKET_SECURITY:-off} == off ]] || counted+='unsealed changed replay '
for kind in garbage wrong_checksum guessed_name unsealed foreign_group wrong_seal guessed_end replay changed udp_checksum ip_checksum fragment \
  options arp echo frag_needed unreachable cookie_open; do
  # Without seals, a stranger that has seen a connection's name can send packets for it; seals prevent this.
  [[ $kind != unsealed && $kind != changed || $counted == *" $kind "* ]] || continue
  check "$kind" "$rate"
done
for kind in garbage guessed_name echo frag_needed; do check "$kind" 0; done
for ((j = 0; j < jobs; ++j)); do
  ! grep -q ' fallback ' <(grep '^round' "$folder/rank$((j * per_job)).out" | sed '1,/ in-network /d') || fail "job $j: a round went by fallback"
done
within 20 alone || fail 'no rounds in the end'
tell 'alone again'
touch "$folder/stop"
for p in "${pids[@]}"; do wait "$p" || fail 'a rank has failed'; done
