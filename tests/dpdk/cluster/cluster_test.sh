#!/usr/bin/env bash
# Four ranks in separate network namespaces use UDP by the kernel's sockets; their aggregator is on the same bridge by
# DPDK. The ranks run mixed collectives and check every value. The aggregator answers a neighbour's ping; then the test
# kills the aggregator, and the ranks go on between themselves.
#   cluster_test.sh MANAGER AGGREGATOR CHAOS_RANK [RANKS [COUNT]]
set -euo pipefail
# shellcheck source=tests/dpdk/cluster/cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

within 30 in_network || fail 'the ranks do not get to the tree'
# TRIBUTARY_UDP_DSCP=46: a filter in the path of rank 0's packets counts the packets with this code point, and drops
# them.
filter_code_point() {
  tc qdisc add dev port0 clsact &&
    tc filter add dev port0 ingress prio 1 bpf bytecode '5,48 0 0 15,84 0 0 252,21 0 1 184,6 0 0 4294967295,6 0 0 0' action mirred egress mirror dev lo continue
}
filtered=
if [[ ${TRIBUTARY_UDP_DSCP:-} == 46 ]]; then
  filter_code_point 2>"$folder/tc" && filtered=yes || echo "not looked at: the code point, as this kernel's traffic control does not do it: $(<"$folder/tc")"
fi
first=$(rounds)
within 30 at_least $((first + 5)) || fail 'no rounds on the tree'
alive
if [[ $filtered ]]; then
  named=$(tc -s filter show dev port0 ingress | sed -n 's/.*Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p' | head -n 1)
  ((${named:-0} > 0)) || fail 'no packet of rank 0 has the code point 46'
  printf '%d packets of rank 0 with the code point 46\n' "$named"
fi

# ---- the aggregator answers its neighbours, and shows metrics
(($(value 'dpdk_received_packets_total') > 0)) || fail 'the metrics know no packets'
for name in received_packets received_bytes sent_packets sent_bytes; do
  (($(value "dpdk_device_${name}_total") > 0)) || fail "the driver counts no $name"
done
(($(value dpdk_link_up) == 1 && $(value dpdk_neighbours) > 0)) || fail 'no link, or no neighbours'
(($(value 'dpdk_answers_total{to="arp"}') > 0)) || fail 'nobody asked for the aggregator by ARP, or it did not answer'
(($(value 'contributions_total') > 0)) || fail 'nothing was contributed'
within 20 faults_happened || fail "no packet was sent again, or none came twice; by the kernel: $(kernel_faults)"
[[ -z ${TRIBUTARY_TEST_KERNEL_LOSS:-} ]] || printf 'by the kernel, on the way to the aggregator: lost, twice, slow: %s\n' "$(kernel_faults)"
printf '%d rounds on the tree, %d contributions in %d packets, %d sent again\n' "$(rounds)" "$(value contributions_total)" \
  "$(value dpdk_received_packets_total)" "$(value dpdk_packets_sent_again_total)"

# ---- the test kills the aggregator while the ranks are on the tree: the ranks go on
within 30 in_network || fail 'the ranks do not get back to the tree'
kill -KILL "$aggregator_pid"
within 30 by_fallback || fail 'the ranks do not fall back'
first=$(rounds)
within 30 at_least $((first + 3)) || fail 'no rounds by fallback'
alive
touch "$folder/stop"
for p in "${pids[@]}"; do wait "$p" || fail 'a rank has failed'; done
printf '%d rounds in all, the last ones by fallback\n' "$(rounds)"
