#pragma once
// A fat-tree as a tree whose edges get wider towards the root. All switches that reach each other without links above
// level k are one domain of level k. All its links to the levels above together are its one wide uplink, because
// equal-cost paths share the load. (C. E. Leiserson, "Fat-trees", IEEE Trans. Computers C-34 (1985), 892-901.)
//
//   level 2            spine-1   spine-2        one domain, the root
//                        | \      / |
//   level 1            leaf-1    leaf-2         one domain each; uplink = its links to both spines
//                      |    |    |    |
//   hosts             n-1  n-2  n-3  n-4        each host belongs to the domain it is cabled to
//
// A dragonfly is such a tree, too: each switch is a domain, each group of switches is a domain above its switches, and
// all groups together are the root. Its adaptive routes use every link out of a switch or a group, so these links
// together are the uplink. (J. Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, 77-88;
// of dragonfly+: A. Shpiner et al., HiPINEB 2017, 1-8.)
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree-manager/topology/topology.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {

inline constexpr std::uint32_t kNoDomain = UINT32_MAX;

struct Domain {
  std::uint32_t parent = kNoDomain;
  std::uint32_t level = 0;
  std::uint64_t uplink_bits_per_second = 0;  // 0 for the root
  std::uint32_t preorder = 0;                // the numbers of a domain's subtree are [preorder, preorder_end)
  std::uint32_t preorder_end = 0;
};

/// The place of one interface of a host.
struct HostPlace {
  std::uint32_t domain = kNoDomain;
  std::uint64_t rate_bits_per_second = 0;
  std::uint32_t rail = kUnnamed;
};

inline constexpr std::uint32_t kUnknownHost = UINT32_MAX;
inline constexpr std::uint32_t kAnyHost = UINT32_MAX - 1;  // for a flat fabric, which accepts unknown names
inline constexpr std::uint32_t kNoInterface = UINT32_MAX;
inline constexpr std::uint32_t kInterfacesMax = 16;  // most interfaces of one host that lanes use

/// A tree of domains. Children have lower indices than their parents; the root is the last. A flat fabric is one domain
/// in which every host name has a place.
class DomainTree {
 public:
  explicit DomainTree(const Topology& topology);

  [[nodiscard]] const std::vector<Domain>& domains() const noexcept { return domains_; }
  [[nodiscard]] std::uint32_t root() const noexcept { return static_cast<std::uint32_t>(domains_.size() - 1); }
  /// Returns the place of the host's first interface; domain == kNoDomain for a host that the topology does not have.
  [[nodiscard]] HostPlace place(const std::string& host) const;
  /// Returns the host's number, kAnyHost, or kUnknownHost.
  [[nodiscard]] std::uint32_t find(const std::string& host) const;
  [[nodiscard]] std::uint32_t interfaces(std::uint32_t host) const;
  [[nodiscard]] HostPlace place(std::uint32_t host, std::uint32_t interface) const;
  /// Returns the interface that the host uses for the lanes of this route; kNoInterface for a host that is not on the
  /// route's rail. Route r uses rail r mod n of n rails, and a host's interfaces on that rail in turn.
  [[nodiscard]] std::uint32_t interface_of(std::uint32_t host, std::uint32_t route) const;
  /// Returns the number of routes after which every host has the same interfaces again; at most kInterfacesMax.
  [[nodiscard]] std::uint32_t routes() const noexcept { return routes_; }
  [[nodiscard]] const std::vector<std::string>& rails() const noexcept { return rails_; }
  /// Returns the number of the rail with this name, which is also its first route; nullopt: there is no such rail.
  [[nodiscard]] std::optional<std::uint32_t> rail_number(std::string_view name) const;
  /// Returns whether there is a way from each rail to each other rail.
  [[nodiscard]] bool rails_meet() const noexcept { return rails_meet_; }
  /// Calls visit(domain) for every domain whose uplink lies on the way between the two domains.
  template <class Visit>
  void each_uplink_between(std::uint32_t a, std::uint32_t b, const Visit& visit) const {
    TRIBUTARY_ASSERT(a < domains_.size() && b < domains_.size(), "a way leads from domain {} to {}, of {}", a, b,
                     domains_.size());
    // The domain with the lower index cannot be an ancestor of the other domain.
    while (a != b) {
      std::uint32_t& lower = a < b ? a : b;
      visit(lower);
      lower = domains_[lower].parent;
    }
  }

 private:
  friend class DomainBuilder;
  void number_preorder();

  void count_routes();

  std::vector<Domain> domains_;
  std::vector<std::vector<HostPlace>> places_;  // index: host; in the order of the host's first links
  std::unordered_map<std::string, std::uint32_t> hosts_;
  std::vector<std::string> rails_;
  std::uint32_t routes_ = 1;
  bool rails_meet_ = true;
  bool open_ = false;  // flat: every host name has a place
  std::uint64_t assumed_rate_ = 0;
};

}  // namespace tributary::manager
