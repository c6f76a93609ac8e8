#include "client/cli/network/host_network.h"

#include <algorithm>
#include <fstream>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

constexpr const char* kBridge = "bridge";
constexpr std::uint32_t kLoopbackMtu = 65536;
constexpr std::uint8_t kPrefixBits = 24;

Ipv4Address address(std::size_t index) {
  return {10, 77, 0, static_cast<std::uint8_t>(index + 1)};
}

MacAddress hardware_address(std::size_t index) {
  return {2, 0, 0, 0, 0, static_cast<std::uint8_t>(index + 1)};  // 2: a locally administered address
}

std::string port_name(std::size_t index) {
  return "port" + std::to_string(index);
}

/// Turns IPv6 off, because it would add its own packets to the links. The links work without this, so a failed write is
/// no error.
void turn_off_ipv6() {
  for (const char* which : {"all", "default"})
    std::ofstream(std::string("/proc/sys/net/ipv6/conf/") + which + "/disable_ipv6") << "1\n";
}

}  // namespace

Result<std::unique_ptr<HostNetwork>> HostNetwork::make(std::vector<HostLink> links) {
  if (links.size() > kHostsMax) {
    return fail(Errc::bad_argument, std::to_string(links.size()) + " hosts, including the aggregators' hosts and the " +
                                        "manager's host: allowed are " + std::to_string(kHostsMax));
  }
  auto fabric = NetworkNamespace::make();
  if (!fabric) return std::unexpected(fabric.error());
  std::unique_ptr<HostNetwork> network(new HostNetwork(std::move(*fabric), std::move(links)));
  if (auto ok = network->connect(); !ok) return std::unexpected(ok.error());
  return network;
}

Status HostNetwork::connect() {
  for (std::size_t index = 0; index < links_.size(); ++index) {
    auto host = NetworkNamespace::make();
    if (!host) return std::unexpected(host.error());
    hosts_.push_back(std::move(*host));
  }
  if (auto ok = switch_.inside([this] { return prepare_switch(); }); !ok) return ok;
  for (std::size_t index = 0; index < hosts_.size(); ++index) {
    if (auto ok = hosts_[index].inside([this, index] { return prepare_host(index); }); !ok) return ok;
  }
  return {};
}

Status HostNetwork::prepare_switch() const {
  turn_off_ipv6();
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  if (auto ok = links->add_bridge(kBridge); !ok) return ok;
  if (auto ok = links->bring_up(kBridge, kHostMtu); !ok) return ok;
  for (std::size_t index = 0; index < hosts_.size(); ++index) {
    const std::string port = port_name(index);
    if (auto ok = links->add_cable(port, kHostDevice, hosts_[index].descriptor()); !ok) return ok;
    if (auto ok = links->plug_in(port, kBridge); !ok) return ok;
    if (auto ok = links->bring_up(port, kHostMtu); !ok) return ok;
    const std::uint64_t rate = links_[index].bits_per_second;
    if (rate == 0) continue;
    if (auto ok = links->shape(port, shape_for(rate)); !ok) return ok;
  }
  return {};
}

Status HostNetwork::prepare_host(std::size_t index) const {
  turn_off_ipv6();
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  if (auto ok = links->bring_up("lo", kLoopbackMtu); !ok) return ok;
  if (auto ok = links->set_address(kHostDevice, hardware_address(index)); !ok) return ok;
  if (auto ok = links->bring_up(kHostDevice, kHostMtu); !ok) return ok;
  if (auto ok = links->add_address(kHostDevice, address(index), kPrefixBits); !ok) return ok;
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (other == index) continue;
    if (auto ok = links->add_neighbour(kHostDevice, address(other), hardware_address(other)); !ok) return ok;
  }
  if (links_[index].bits_per_second == 0) return {};
  const LinkShape shape = shape_for(links_[index].bits_per_second);
  if (auto ok = links->limit_segments(kHostDevice, shape.segment_bytes); !ok) return ok;
  return links->shape(kHostDevice, shape);
}

std::size_t HostNetwork::index_of(const std::string& host) const {
  const auto found = std::ranges::find(links_, host, &HostLink::host);
  TRIBUTARY_ASSERT(found != links_.end(), "there is no host {}", host);
  return static_cast<std::size_t>(found - links_.begin());
}

std::string HostNetwork::address_of(const std::string& host) const {
  const Ipv4Address at = address(index_of(host));
  return std::to_string(at[0]) + "." + std::to_string(at[1]) + "." + std::to_string(at[2]) + "." +
         std::to_string(at[3]);
}

ChildHost HostNetwork::place_of(const std::string& host) const {
  return {.network = hosts_[index_of(host)].descriptor(), .name = host};
}

Status HostNetwork::enter(const std::string& host) const {
  return hosts_[index_of(host)].enter();
}

}  // namespace tributary::cli
