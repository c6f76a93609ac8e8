#include "client/cli/doctor/lane_road.h"

#include <cstdlib>
#include <ranges>
#include <string_view>

#include "client/control/unique_id.h"
#include "tributary/transport/rails.h"
#include "tributary/transport/system_tree.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/verbs.h"

namespace tributary::cli::doctor {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<PacketSecurity> wanted_security() {
  for (const char* const name : {"TRIBUTARY_SECURITY", "TRIBUTARY_PACKET_SECURITY"}) {
    if (variable(name).empty()) continue;
    auto security = parse_packet_security(variable(name));
    if (!security) return fail(security.error().code, std::string(name) + ": " + security.error().message);
    return security;
  }
  return PacketSecurity::off;
}

/// Returns why a rank cannot use verbs here; an empty text: it can.
std::string why_not_verbs() {
  const Status available = transport::verbs_available();
  return available ? "" : available.error().message;
}

Result<LaneRoad::Kind> choose_kind(std::string_view wanted) {
  if (wanted.empty()) return LaneRoad::Kind::tcp;
  std::string why;
  for (const auto part : std::views::split(wanted, ',')) {
    const std::string_view name(part.begin(), part.end());
    if (name == "tcp") return LaneRoad::Kind::tcp;
    if (name == "udp") return LaneRoad::Kind::udp;
    std::string reason = "no transport has this name";
    if (name == "verbs") reason = why_not_verbs();
    if (name == "dpdk") reason = "the doctor has no device of DPDK; tributary perf all_reduce --require in-network has";
    if (reason.empty()) return LaneRoad::Kind::verbs;
    why += (why.empty() ? "" : ", ") + std::string(name) + " (" + reason + ")";
  }
  return fail(Errc::unsupported, "TRIBUTARY_TRANSPORT names nothing that can be measured here: " + why);
}

/// Returns the addresses of the RDMA ports that this environment names, or of all ports, nearest first.
Result<std::vector<std::string>> rdma_addresses() {
  const std::string_view names = variable("TRIBUTARY_RDMA_DEVICES"), interface = variable("TRIBUTARY_IFNAME");
  if (names.empty() && !interface.empty()) {
    auto address = transport::address_of_interface(interface);
    if (!address) return std::unexpected(address.error());
    return std::vector{std::move(*address)};
  }
  const transport::SystemTree system;
  const auto rails = transport::choose_rails(system, transport::verbs_rails(),
                                             {.names = transport::names_of_rails(names),
                                              .gpu = {},
                                              .node = transport::node_of_this_thread(system),
                                              .turn = 0});
  if (!rails) return std::unexpected(rails.error());
  std::vector<std::string> addresses;
  for (const transport::Rail& rail : *rails) addresses.push_back(rail.address);
  return addresses;
}

}  // namespace

Result<LaneRoad> LaneRoad::of_environment() {
  const auto security = wanted_security();
  if (!security) return std::unexpected(security.error());
  const auto kind = choose_kind(variable("TRIBUTARY_TRANSPORT"));
  if (!kind) return std::unexpected(kind.error());
  LaneRoad road(*kind, std::make_shared<transport::LinkKeys>(*security, *kind == Kind::verbs));
  if (*kind == Kind::verbs) {
    auto addresses = rdma_addresses();
    if (!addresses) return std::unexpected(addresses.error());
    road.rails_ = std::move(*addresses);
  }
  if (!road.keys_->wanted()) return road;
  const auto secret = client::random_secret();
  if (!secret) return std::unexpected(secret.error());
  const auto exchange = client::exchange_key_of_group(*secret);
  if (!exchange) return std::unexpected(exchange.error());
  road.exchange_key_ = exchange->public_key();
  road.secrets_.emplace(road.keys_.get(), *secret);
  return road;
}

Status LaneRoad::take(const GroupDescriptor& group) {
  return secrets_ ? secrets_->take(group) : Status{};
}

}  // namespace tributary::cli::doctor
