#pragma once
// The secrets with which transports of packets and streams seal their connections, and with which an RDMA connection
// proves the place that it claims. The maker of the transport shares this object with the transport, and adds a secret
// before the transport connects. protocol/link_secret.h says where secrets come from.
#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "tributary/protocol/link_secret.h"

namespace tributary::transport {

/// The link for which a connection is sealed, and the kind of seal.
struct SealedLink {
  LinkName name;
  PacketSecurity security = PacketSecurity::off;
  friend bool operator==(const SealedLink&, const SealedLink&) = default;
};

/// The reason for which there is no secret.
enum class NoSecret : std::uint8_t {
  unknown,  // this side does not have it
  not_yet,  // this aggregator waits for its manager's key, from which the secret follows
};

/// The longest time that a connection or a join waits for the manager's key. The manager may plan trees over an
/// aggregator while its answer to the aggregator's registration is still on its way: so a child may come before the
/// key.
inline constexpr auto kKeyLimit = std::chrono::seconds(3);
/// The time between two looks for the key, while connections wait for it.
inline constexpr auto kKeyPause = std::chrono::milliseconds(20);

/// Any thread may call it. Transports read it when a connection opens, never for a packet.
class LinkKeys {
 public:
  struct Link {
    SealedLink link;
    LinkSecret secret{};
  };
  using Found = std::expected<LinkSecret, NoSecret>;
  /// Derives the secret of a child's place from the secret that this aggregator shares with its manager.
  using Derive = std::function<Found(const LinkName& name)>;
  /// `least`: the least security of incoming connections, and of outgoing connections that belong to no group.
  /// `proves`: connections that are not sealed prove that they have the secret.
  explicit LinkKeys(PacketSecurity least = PacketSecurity::off, bool proves = false) : least_(least), proves_(proves) {}
  [[nodiscard]] PacketSecurity least() const noexcept { return least_; }
  /// True if places need secrets.
  [[nodiscard]] bool wanted() const noexcept { return proves_ || least_ != PacketSecurity::off; }

  /// Sets the secret of the connections between the ranks of a job, in both directions. These connections have group 0.
  void set_peers(const LinkSecret& secret);
  /// Sets the function that gives the secrets of groups' incoming connections.
  void set_derive(Derive derive);
  /// Adds the secret for the outgoing connection of this group, epoch and lane.
  void add(const LinkName& name, const LinkSecret& secret, PacketSecurity security);
  void remove(const LinkName& name);

  /// The secret that seals or proves an outgoing connection; empty: the connection opens without a seal, or fails if
  /// least() asks for one.
  [[nodiscard]] std::optional<Link> to_connect(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane) const;
  /// The secret of an incoming connection.
  [[nodiscard]] Found of(const LinkName& name) const;

 private:
  const PacketSecurity least_;
  const bool proves_;
  mutable std::mutex mutex_;  // guards all members below
  std::optional<LinkSecret> peers_;
  Derive derive_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, Link> links_;
};

}  // namespace tributary::transport
