#!/usr/bin/env bash
# Runs a program in a separate network, where the aggregators of a local cluster have devices that DPDK drives. Each
# device is one end of a pair of interfaces, whose other end is in a bridge with this host's kernel. The ranks use this
# kernel's UDP.
#   in_network.sh COMMAND... TRIBUTARY_TEST_AGGREGATORS (5): the most aggregators
set -euo pipefail
if [[ ${IN_NETWORK_INSIDE:-} != yes ]]; then
  if ((EUID != 0)) || ! unshare --net --mount --pid --fork --kill-child true 2>/dev/null; then
    echo 'skipped: namespaces need root'
    exit 77
  fi
  for tool in ip ethtool; do command -v "$tool" >/dev/null || { echo "skipped: $tool is not there"; exit 77; }; done
  IN_NETWORK_INSIDE=yes exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi
ip link set lo up
ip link add bridge0 type bridge forward_delay 0 && ip addr add 10.6.0.254/24 dev bridge0 && ip link set bridge0 up
# Otherwise the kernel would leave checksums, and the cutting of long packets, to the wire, which cannot do them.
ethtool -K bridge0 tx off >/dev/null
for ((i = 1; i <= ${TRIBUTARY_TEST_AGGREGATORS:-5}; ++i)); do
  ip link add "wire$i" type veth peer name "port$i"
  ip link set "wire$i" up && ip link set "port$i" master bridge0 up
  ethtool -K "wire$i" tx off rx off >/dev/null
done
export TRIBUTARY_TRANSPORT=udp TRIBUTARY_IFNAME=bridge0
export TRIBUTARY_CLUSTER_DPDK_DEVICE=${TRIBUTARY_CLUSTER_DPDK_DEVICE:-net_af_packet0,iface=wire%,qpairs=#}
export TRIBUTARY_CLUSTER_DPDK_ADDRESSES=10.6.0.%/24

# AF_XDP receives no packets into ordinary memory, so this script reserves huge pages while it runs.
if [[ $TRIBUTARY_CLUSTER_DPDK_DEVICE == *net_af_xdp* ]]; then
  pages=/sys/kernel/mm/hugepages/hugepages-2048kB
  wanted=$((12 * ${TRIBUTARY_TEST_AGGREGATORS:-5}))
  before=$(<"$pages/nr_hugepages")
  trap 'echo "$before" >"$pages/nr_hugepages"' EXIT
  if (($(<"$pages/free_hugepages") < wanted)); then echo $((before + wanted)) >"$pages/nr_hugepages"; fi
  if (($(<"$pages/free_hugepages") < wanted)); then
    echo "skipped: AF_XDP needs $wanted free huge pages of 2 MiB, and this machine has memory for $(<"$pages/free_hugepages")"
    exit 77
  fi
fi
"$@"
