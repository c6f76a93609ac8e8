# shellcheck shell=bash
# A cluster for the tests of this folder, which source this file: a manager, an aggregator whose device DPDK drives, and
# ranks in separate network namespaces. All processes have started when this file ends. It takes the test's arguments:
# MANAGER AGGREGATOR CHAOS_RANK [RANKS [COUNT]]. RANKS dpdk: each rank has a DPDK device of its own, for which its
# kernel has no address; another bridge leads to the kernel.
# TRIBUTARY_TEST_WORKERS (1): the aggregator's workers; with several workers, its device has a queue for each worker and
# one for the door.
# TRIBUTARY_TEST_KERNEL_LOSS=N: each host's kernel and each port of the bridge lose N packets in a thousand, before the
# kernel cuts long packets; one packet in a hundred is sent twice, and one in twenty is overtaken. TRIBUTARY_TEST_JOBS
# (1): the number of jobs, each on an equal number of neighbouring hosts; start_job starts one more.
# TRIBUTARY_TEST_GROUPS=several in the environment: each rank is in three groups at once, and its process in three
# communicators.
set -euo pipefail
manager=$1 aggregator=$2 rank=$3 over=${4:-udp} ranks=${5:-4}

# All processes run in namespaces that end with this script, however it ends.
if [[ ${DPDK_CLUSTER_INSIDE:-} != yes ]]; then
  if ((EUID != 0)) || ! unshare --net --mount --pid --fork --kill-child true 2>/dev/null; then
    echo 'skipped: namespaces need root'
    exit 77
  fi
  for tool in ip ethtool curl; do command -v "$tool" >/dev/null || { echo "skipped: $tool is not there"; exit 77; }; done
  DPDK_CLUSTER_INSIDE=yes exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

folder=$(mktemp -d)
trap 'status=$?; ((status == 0)) || { tail -n 25 "$folder"/*.log >&2 || true; }; rm -rf "$folder"; exit $status' EXIT
fail() { printf 'failed: %s\n' "$*" >&2; exit 1; }
# within SECONDS COMMAND...: repeats the command until it succeeds
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# ---- the network: a bridge here, one host for each rank, and the aggregator's wire, whose far end DPDK drives
mkdir -p /run/netns && mount -t tmpfs none /run/netns
ip link set lo up
ip link add bridge0 type bridge forward_delay 0 && ip link set bridge0 up && ip addr add 10.6.0.254/24 dev bridge0
ip link add bridge1 type bridge forward_delay 0 && ip link set bridge1 up && ip addr add 10.5.0.254/24 dev bridge1
ethtool -K bridge0 tx off >/dev/null  # otherwise this kernel would also leave its checksums to the wire
plug() { ip link set "$1" master bridge0 up; }
ip link add agg-wire type veth peer name agg-port && ip link set agg-wire up && plug agg-port
ethtool -K agg-wire tx off rx off >/dev/null
for ((i = 0; i < ranks; ++i)); do
  ip netns add "host$i"
  ip link add "port$i" type veth peer name eth0 netns "host$i"
  plug "port$i"
  ip netns exec "host$i" ip link set lo up
  if [[ $over == dpdk ]]; then
    ip link add "control$i" type veth peer name control netns "host$i"
    ip link set "control$i" master bridge1 up
    ip netns exec "host$i" ip addr add "10.5.0.1$i/24" dev control
    ip netns exec "host$i" ip link set control up
  else
    ip netns exec "host$i" ip addr add "10.6.0.1$i/24" dev eth0
  fi
  ip netns exec "host$i" ip link set eth0 up
  # Otherwise the kernel would leave the checksum to the wire, which computes none.
  ip netns exec "host$i" ethtool -K eth0 tx off >/dev/null
done

# ---- faults that the kernel makes: its packet filter draws a number for each packet
if [[ -n ${TRIBUTARY_TEST_KERNEL_LOSS:-} ]]; then
  # drawn PERMILLE YES NO: prints a program that returns YES for this share of the packets, else NO
  drawn() { echo "4,32 0 0 4294963256,53 1 0 $(($1 * 4294967)),6 0 0 $2,6 0 0 $3"; }
  # spoil INTERFACE [IN_NAMESPACE...]: makes faults in packets that leave the interface
  spoil() {
    local at=$1
    shift
    "$@" tc qdisc add dev "$at" clsact || return 1
    "$@" tc filter add dev "$at" egress prio 1 bpf bytecode "$(drawn 10 4294967295 0)" action mirred egress mirror dev "$at" continue || return 1
    "$@" tc filter add dev "$at" egress prio 2 bpf da bytecode "$(drawn "$TRIBUTARY_TEST_KERNEL_LOSS" 2 4294967295)" || return 1
    # The slow class delays its packets.
    "$@" tc qdisc add dev "$at" root handle 1: htb default 1 || return 1
    "$@" tc class add dev "$at" parent 1: classid 1:1 htb rate 10gbit burst 1m cburst 1m quantum 60000 || return 1
    "$@" tc class add dev "$at" parent 1: classid 1:2 htb rate 30mbit burst 2k cburst 2k quantum 1514 || return 1
    "$@" tc filter add dev "$at" parent 1: bpf bytecode "$(drawn 50 4294967295 0)" flowid 1:2
  }
  spoil agg-port 2>"$folder/tc" || { echo "skipped: this kernel's traffic control does not do it: $(<"$folder/tc")"; exit 77; }
  for ((i = 0; i < ranks; ++i)); do
    spoil "port$i" 2>/dev/null && spoil eth0 ip netns exec "host$i" 2>/dev/null || fail "port $i cannot be spoiled"
    ip netns exec "host$i" ethtool -K eth0 gro on >/dev/null
  done
fi
# kernel_faults: prints the numbers of packets to the aggregator that the kernel has lost, sent twice, and sent by the
# slow class
kernel_faults() {
  local lost twice slow
  lost=$(tc -s qdisc show dev agg-port clsact | sed -n 's/.*dropped \([0-9]*\).*/\1/p' | head -n 1)
  twice=$(tc -s filter show dev agg-port egress | sed -n 's/.*Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p' | head -n 1)
  slow=$(tc -s class show dev agg-port classid 1:2 | sed -n 's/.*Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p' | head -n 1)
  echo "${lost:-0} ${twice:-0} ${slow:-0}"
}

# ---- the daemons
# TRIBUTARY_TEST_HUGE_PAGES=hidden: the processes see no huge pages.
[[ ${TRIBUTARY_TEST_HUGE_PAGES:-} != hidden ]] || mount -t tmpfs none /sys/kernel/mm/hugepages
workers=${TRIBUTARY_TEST_WORKERS:-1}
((workers > 1)) && queues=",qpairs=$((workers + 1))" || queues=
cat >"$folder/manager.yaml" <<EOF
listen: "0.0.0.0:7470"
allow_plain_http: true
state_directory: $folder/state
ready_file: $folder/manager.ready
failed_exclusion: 3s  # the cluster has no other aggregator, and the ranks must not wait longer for an aggregator that
                      # hung
EOF
cat >"$folder/aggregator.yaml" <<EOF
name: agg
host_id: agg
manager: http://10.6.0.254:7470
token_file: $folder/state/aggregator.token
state_file: $folder/agg.key
transport: dpdk
listen: "0.0.0.0:7471"
http_listen: 127.0.0.1:7472
workers: $workers
dpdk_device: "${TRIBUTARY_TEST_DEVICE:-net_af_packet0,iface=agg-wire$queues}"
dpdk_addresses: 10.6.0.1/24
dpdk_sleep: 50us
packet_security: ${TRIBUTARY_PACKET_SECURITY:-off}
EOF
"$manager" --config "$folder/manager.yaml" >"$folder/manager.log" 2>&1 &
within 20 test -s "$folder/manager.ready" || fail 'the manager does not start'
start_aggregator() {
  "$aggregator" --config "$folder/aggregator.yaml" >>"$folder/aggregator.log" 2>&1 &
  aggregator_pid=$!
}
start_aggregator
registered() { curl -s http://10.6.0.254:7470/v1/aggregators | grep -q '"active"'; }
within 20 registered || fail 'the aggregator does not register'

# ---- the ranks
[[ $over == dpdk ]] && net=10.5.0 interface=control || net=10.6.0 interface=eth0
export TRIBUTARY_TRANSPORT=$over TRIBUTARY_TUNING=off TRIBUTARY_TIMEOUT=30 TRIBUTARY_MANAGER=http://$net.254:7470
export TRIBUTARY_TOKEN_FILE=$folder/state/job.token
[[ ${TRIBUTARY_TEST_GROUPS:-one} == several ]] && groups=() || groups=(--world-only)
pids=() jobs=0 per_job=$((ranks / ${TRIBUTARY_TEST_JOBS:-1}))
start_rank() {
  local i=$1 first=$(($1 / per_job * per_job))
  RANK=$((i - first)) WORLD_SIZE=$per_job MASTER_ADDR=$net.1$first MASTER_PORT=$((29500 + i / per_job)) LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 TRIBUTARY_IFNAME=$interface TRIBUTARY_HOST_ID=host$i \
    TRIBUTARY_DPDK_DEVICE=net_af_packet0,iface=eth0 TRIBUTARY_DPDK_ADDRESSES=10.6.0.1$i/24 ip netns exec "host$i" \
    "$rank" --stop-file "$folder/stop" "${groups[@]}" --bytes-max 65536 >"$folder/rank$i.out" 2>"$folder/rank$i.log" &
  pids+=($!)
}
start_job() {
  local i
  for ((i = jobs * per_job; i < (jobs + 1) * per_job; ++i)); do start_rank "$i"; done
  jobs=$((jobs + 1))
}
for ((job = 0; job < ${TRIBUTARY_TEST_START_JOBS:-${TRIBUTARY_TEST_JOBS:-1}}; ++job)); do start_job; done
# Counts the rounds of the first job, or of job number $1.
rounds() { grep -c '^round' "$folder/rank$((${1:-0} * per_job)).out" || true; }
at_least() { (($(rounds) >= $1)); }
alive() { local p; for p in "${pids[@]}"; do kill -0 "$p" || fail 'a rank has ended'; done; }
# True if all groups of rank 0 were in the network in its last round.
in_network() { grep '^round' "$folder/rank$((${1:-0} * per_job)).out" | tail -n 1 | grep ' in-network ' | grep -qv ' fallback '; }
by_fallback() { grep '^round' "$folder/rank0.out" | tail -n 1 | grep ' fallback ' | grep -qv ' in-network '; }

value() { curl -s http://127.0.0.1:7472/metrics | awk -v name="tributary_aggregator_$1" 'index($1, name) == 1 { sum += $2 } END { printf "%d", sum }'; }
# True if packets were lost or repeated, or if the test demands no such faults.
faults_happened() {
  local told=${TRIBUTARY_TEST_PACKET_FAULTS:-} lost twice slow
  if [[ -n ${TRIBUTARY_TEST_KERNEL_LOSS:-} ]]; then
    read -r lost twice slow < <(kernel_faults)
    ((lost > 0 && twice > 0 && slow > 0)) || return 1
    told+=lost=1,repeated=1
  fi
  [[ ! $told =~ lost=[1-9] ]] || (($(value dpdk_packets_sent_again_total) > 0)) || return 1
  [[ ! $told =~ repeated=[1-9] ]] || (($(value dpdk_packets_repeated_total) > 0))
}
