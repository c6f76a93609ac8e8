#include "client/cli/network/links.h"

#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include <algorithm>

namespace tributary::cli {
namespace {

constexpr std::uint16_t kNew = NLM_F_CREATE | NLM_F_EXCL;
constexpr std::uint32_t kBucket = TC_H_MAKE(1U << 16, 0U);
constexpr std::uint32_t kClass = TC_H_MAKE(1U << 16, 1U);
constexpr std::uint32_t kQueue = TC_H_MAKE(10U << 16, 0U);
constexpr unsigned kTickShift = 6;  // the kernel's packet schedulers count in 64 ns

std::uint32_t clamped(double value, std::uint32_t low, std::uint32_t high = UINT32_MAX) {
  return static_cast<std::uint32_t>(std::clamp(value, static_cast<double>(low), static_cast<double>(high)));
}

NetlinkMessage link_message(std::uint16_t flags, int index = 0, unsigned up = 0) {
  NetlinkMessage message(RTM_NEWLINK, flags);
  ifinfomsg body{};
  body.ifi_index = index;
  body.ifi_flags = up;
  body.ifi_change = up;
  message.body(body);
  return message;
}

/// Returns a message about the packet scheduler of a device.
NetlinkMessage queueing_message(std::uint16_t type, int index, std::uint32_t parent, std::uint32_t handle) {
  NetlinkMessage message(type, kNew);
  tcmsg body{};
  body.tcm_ifindex = index;
  body.tcm_parent = parent;
  body.tcm_handle = handle;
  message.body(body);
  return message;
}

/// Returns the time of a number of bytes at this rate, in the schedulers' ticks.
std::uint32_t ticks(std::uint32_t bytes, std::uint64_t bytes_per_second) {
  return clamped(1e9 * bytes / static_cast<double>(bytes_per_second) / (1U << kTickShift), 1);
}

Result<int> index_of(const std::string& device) {
  const unsigned index = if_nametoindex(device.c_str());
  if (index == 0) return fail(Errc::io, "there is no network device " + device);
  return static_cast<int>(index);
}

}  // namespace

LinkShape shape_for(std::uint64_t bits_per_second) {
  const double bytes = static_cast<double>(bits_per_second) / 8;
  return {.bytes_per_second = bits_per_second / 8,
          .burst_bytes = clamped(bytes * 125e-6, 2 * kFrameBytes),
          .queue_bytes = clamped(bytes * 4e-3, 256U << 10),
          .segment_bytes = clamped(bytes * 0.5e-3, 2 * kFrameBytes, 65536)};
}

Result<Links> Links::open() {
  auto socket = NetlinkSocket::open();
  if (!socket) return std::unexpected(socket.error());
  return Links(std::move(*socket));
}

Status Links::add_bridge(const std::string& name) {
  NetlinkMessage message = link_message(kNew);
  message.text(IFLA_IFNAME, name);
  message.nested(IFLA_LINKINFO, [&] {
    message.text(IFLA_INFO_KIND, "bridge");
    message.nested(IFLA_INFO_DATA, [&] { message.attribute(IFLA_BR_MCAST_SNOOPING, std::uint8_t{0}); });
  });
  return socket_.ask(message, "the bridge " + name + " could not be made");
}

Status Links::add_cable(const std::string& name, const std::string& other, int other_namespace) {
  NetlinkMessage message = link_message(kNew);
  message.text(IFLA_IFNAME, name);
  message.nested(IFLA_LINKINFO, [&] {
    message.text(IFLA_INFO_KIND, "veth");
    message.nested(IFLA_INFO_DATA, [&] {
      message.nested(VETH_INFO_PEER, [&] {
        message.body(ifinfomsg{});
        message.text(IFLA_IFNAME, other);
        message.attribute(IFLA_NET_NS_FD, static_cast<std::uint32_t>(other_namespace));
      });
    });
  });
  return socket_.ask(message, "the virtual cable " + name + " could not be made");
}

Status Links::plug_in(const std::string& port, const std::string& bridge) {
  const auto index = index_of(port), master = index_of(bridge);
  if (!index) return std::unexpected(index.error());
  if (!master) return std::unexpected(master.error());
  NetlinkMessage message = link_message(0, *index);
  message.attribute(IFLA_MASTER, static_cast<std::uint32_t>(*master));
  return socket_.ask(message, port + " could not be plugged into the bridge");
}

Status Links::set_address(const std::string& device, const MacAddress& address) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  NetlinkMessage message = link_message(0, *index);
  message.attribute(IFLA_ADDRESS, address);
  return socket_.ask(message, device + " could not be given its hardware address");
}

Status Links::bring_up(const std::string& device, std::uint32_t mtu) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  NetlinkMessage message = link_message(0, *index, IFF_UP);
  message.attribute(IFLA_MTU, mtu);
  return socket_.ask(message, device + " could not be brought up with an MTU of " + std::to_string(mtu));
}

Status Links::limit_segments(const std::string& device, std::uint32_t bytes) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  NetlinkMessage message = link_message(0, *index);
  message.attribute(IFLA_GSO_MAX_SIZE, bytes);
  return socket_.ask(message, "the segments of " + device + " could not be limited to " + std::to_string(bytes) + " B");
}

Status Links::add_address(const std::string& device, const Ipv4Address& address, std::uint8_t prefix_bits) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  NetlinkMessage message(RTM_NEWADDR, kNew);
  message.body(ifaddrmsg{.ifa_family = AF_INET,
                         .ifa_prefixlen = prefix_bits,
                         .ifa_flags = 0,
                         .ifa_scope = 0,
                         .ifa_index = static_cast<std::uint32_t>(*index)});
  message.attribute(IFA_LOCAL, address);
  message.attribute(IFA_ADDRESS, address);
  return socket_.ask(message, device + " could not be given its address");
}

Status Links::add_neighbour(const std::string& device, const Ipv4Address& address, const MacAddress& at) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  NetlinkMessage message(RTM_NEWNEIGH, kNew);
  ndmsg body{};
  body.ndm_family = AF_INET;
  body.ndm_ifindex = *index;
  body.ndm_state = NUD_PERMANENT;
  message.body(body);
  message.attribute(NDA_DST, address);
  message.attribute(NDA_LLADDR, at);
  return socket_.ask(message, device + " could not be told a neighbour");
}

Status Links::shape(const std::string& device, const LinkShape& shape) {
  const auto index = index_of(device);
  if (!index) return std::unexpected(index.error());
  if (auto ok = add_bucket(*index); !ok) return ok;
  if (auto ok = add_rate(*index, shape); !ok) return ok;
  return add_queue(*index, shape);
}

Status Links::add_bucket(int index) {
  NetlinkMessage message = queueing_message(RTM_NEWQDISC, index, TC_H_ROOT, kBucket);
  message.text(TCA_KIND, "htb");
  tc_htb_glob all{};
  all.version = TC_HTB_PROTOVER;
  all.rate2quantum = 10;
  all.defcls = TC_H_MIN(kClass);
  message.nested(TCA_OPTIONS, [&] { message.attribute(TCA_HTB_INIT, all); });
  return socket_.ask(message, "the link could not be shaped (the kernel needs sch_htb)");
}

Status Links::add_rate(int index, const LinkShape& shape) {
  NetlinkMessage message = queueing_message(RTM_NEWTCLASS, index, kBucket, kClass);
  message.text(TCA_KIND, "htb");
  tc_htb_opt rate{};
  rate.rate.linklayer = TC_LINKLAYER_ETHERNET;  // the kernel then computes times itself, and needs no table
  rate.rate.rate = clamped(static_cast<double>(shape.bytes_per_second), 1);
  rate.ceil = rate.rate;
  rate.buffer = rate.cbuffer = ticks(shape.burst_bytes, shape.bytes_per_second);
  rate.quantum = kFrameBytes;
  message.nested(TCA_OPTIONS, [&] {
    message.attribute(TCA_HTB_PARMS, rate);
    if (shape.bytes_per_second <= UINT32_MAX) return;
    message.attribute(TCA_HTB_RATE64, shape.bytes_per_second);
    message.attribute(TCA_HTB_CEIL64, shape.bytes_per_second);
  });
  return socket_.ask(message, "the link could not be given its rate");
}

Status Links::add_queue(int index, const LinkShape& shape) {
  NetlinkMessage message = queueing_message(RTM_NEWQDISC, index, kClass, kQueue);
  message.text(TCA_KIND, "bfifo");
  message.attribute(TCA_OPTIONS, tc_fifo_qopt{.limit = shape.queue_bytes});
  return socket_.ask(message, "the link could not be given its queue");
}

}  // namespace tributary::cli
