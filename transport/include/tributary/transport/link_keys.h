#pragma once
// The secrets that a packet transport seals its connections with, and by which an RDMA connection proves for whom it is
// before there is one: whoever makes the transport keeps a share of this, and adds a secret before it connects.
// protocol/link_secret.h says where secrets come from.
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "tributary/protocol/link_secret.h"

namespace tributary::transport {

/// For whom a connection is sealed, and how.
struct SealedLink {
  LinkName name;
  PacketSecurity security = PacketSecurity::off;
  friend bool operator==(const SealedLink&, const SealedLink&) = default;
};

/// Any thread. Asked when a connection opens, never for a packet.
class LinkKeys {
 public:
  struct Link {
    SealedLink link;
    LinkSecret secret{};
  };
  /// The secret of a child's place, from what this aggregator shares with its manager; none: it shares nothing yet.
  using Derive = std::function<std::optional<LinkSecret>(const LinkName& name)>;

  /// `least`: what connections that come in have at the least, and those of no group that go out.
  /// `proves`: connections that are not sealed are proved.
  explicit LinkKeys(PacketSecurity least = PacketSecurity::off, bool proves = false) : least_(least), proves_(proves) {}
  [[nodiscard]] PacketSecurity least() const noexcept { return least_; }
  /// Places need secrets.
  [[nodiscard]] bool wanted() const noexcept { return proves_ || least_ != PacketSecurity::off; }

  /// Of connections between the ranks of a job, which are of group 0: both ways.
  void set_peers(const LinkSecret& secret);
  /// Of connections that come in for a group.
  void set_derive(Derive derive);
  /// Of a connection that will go out for this group, epoch and lane.
  void add(const LinkName& name, const LinkSecret& secret, PacketSecurity security);
  void remove(const LinkName& name);

  /// What a connection that goes out is sealed with, or proves itself by; none: it goes in clear, unless least()
  /// forbids it.
  [[nodiscard]] std::optional<Link> to_connect(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane) const;
  /// The secret of one that comes in.
  [[nodiscard]] std::optional<LinkSecret> of(const LinkName& name) const;

 private:
  const PacketSecurity least_;
  const bool proves_;
  mutable std::mutex mutex_;  // guards all below
  std::optional<LinkSecret> peers_;
  Derive derive_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, Link> links_;
};

}  // namespace tributary::transport
