#pragma once
// The transport and the secrets with which a rank of this environment would connect to aggregators.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/control/link_secrets.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"

namespace tributary::cli::doctor {

class LaneRoad {
 public:
  enum class Kind : std::uint8_t { tcp, udp, verbs };

  /// Chooses as the library does, from TRIBUTARY_TRANSPORT, TRIBUTARY_SECURITY (or TRIBUTARY_PACKET_SECURITY),
  /// TRIBUTARY_IFNAME and TRIBUTARY_RDMA_DEVICES. The error says why none of the named transports can be measured.
  [[nodiscard]] static Result<LaneRoad> of_environment();

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] PacketSecurity security() const noexcept { return keys_->least(); }
  /// The key for a request for groups; zeros if connections need no secrets.
  [[nodiscard]] ExchangePublicKey exchange_key() const noexcept { return exchange_key_; }
  /// Takes the secrets of this group's lanes. Errc::denied: the group is less secure than this environment demands.
  [[nodiscard]] Status take(const GroupDescriptor& group);
  /// The keys for a transport; nullptr if its connections need none.
  [[nodiscard]] std::shared_ptr<transport::LinkKeys> keys() const { return keys_->wanted() ? keys_ : nullptr; }
  /// Addresses of this host's RDMA ports, by lane; empty without verbs.
  [[nodiscard]] const std::vector<std::string>& rails() const noexcept { return rails_; }

 private:
  LaneRoad(Kind kind, std::shared_ptr<transport::LinkKeys> keys) : kind_(kind), keys_(std::move(keys)) {}

  Kind kind_;
  std::shared_ptr<transport::LinkKeys> keys_;
  ExchangePublicKey exchange_key_{};
  std::optional<client::LinkSecrets> secrets_;  // no value: connections need no secrets
  std::vector<std::string> rails_;
};

}  // namespace tributary::cli::doctor
