#pragma once
// The group descriptor: the manager's answer to "here are my ranks". One tree per lane, with a token chain for every
// rank.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary {

struct Endpoint {
  std::string host;  // an address or a name
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
[[nodiscard]] std::string to_string(const Endpoint& endpoint);  // "10.0.0.1:7471", "[::1]:7471"
/// "host:port" or "[v6]:port"; Errc::bad_argument says what is missing.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

/// Where one rank enters one lane.
struct LaneEntry {
  Endpoint aggregator;  // the rank's leaf
  std::string aggregator_name;
  TokenChain tokens;
};

struct LaneDescriptor {
  std::uint32_t window = 0;  // segments
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels = 0;        // aggregators between a rank and the result: 1 is a single root
  std::vector<LaneEntry> entries;  // by rank in the manager's answer; a single one in what one rank is sent
};

/// Rates that the fabric lets each path of a group carry, in bits per second in each direction; 0: not known.
struct PathRates {
  std::uint64_t links = 0;  // of the slowest member's link
  std::uint64_t trees = 0;  // of a vector through all lanes together; the members' own links are left out
  std::uint64_t ranks = 0;  // of a member in a ring of all members: `links`, or less where the ring's uplinks are full
  friend bool operator==(const PathRates&, const PathRates&) = default;
};

/// An empty one (no lanes) means: use the fallback; `reason` says why, in a sentence.
struct GroupDescriptor {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::string job;
  std::int64_t expires_at = 0;      // of the tokens; seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;  // renew the group within this, or its reservation is given away
  std::string reason;
  std::vector<LaneDescriptor> lanes;
  PacketSecurity security = PacketSecurity::off;  // of the lanes' packets
  ExchangePublicKey exchange_key{};               // the manager's, to unmask the tokens' secrets; with security alone
  PathRates rates{};
  [[nodiscard]] bool empty() const noexcept { return lanes.empty(); }
  /// The part that `rank` needs: the same lanes, one entry each.
  [[nodiscard]] GroupDescriptor for_rank(std::uint32_t rank) const;
};

[[nodiscard]] nlohmann::json to_json(const GroupDescriptor& descriptor);
/// Errc::corrupt names the member that is missing or out of bounds.
[[nodiscard]] Result<GroupDescriptor> group_descriptor_from_json(const nlohmann::json& json);

}  // namespace tributary
