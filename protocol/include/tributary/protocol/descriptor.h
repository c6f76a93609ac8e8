#pragma once
// The group descriptor: the manager's answer when rank 0 asks for a group. It has one tree for each lane, and a token
// chain for every rank.
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
/// Reads "host:port" or "[v6]:port"; Errc::bad_argument says what is missing.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

/// Where one rank enters one lane.
struct LaneEntry {
  Endpoint aggregator;  // the rank's leaf
  std::string aggregator_name;
  TokenChain tokens;
};

/// The greatest weight of a lane. A lane that should carry less than a 64th of another is not worth its connections.
inline constexpr std::uint32_t kLaneWeightMax = 64;

struct LaneDescriptor {
  std::uint32_t window = 0;  // segments
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels = 0;        // aggregators from a rank's leaf to the root, both counted: 1 is a single root
  std::uint32_t weight = 1;        // its share of a group's segments, over the sum of all lanes' weights
  std::vector<LaneEntry> entries;  // by rank in the manager's answer; for_rank() leaves one
};

/// The greatest rate in a descriptor: the greatest number that every reader of JSON takes.
inline constexpr std::uint64_t kPathRateMax = 1ULL << 53;

/// The rates of a group's paths through the fabric, in bits per second in each direction; 0: not known.
struct PathRates {
  std::uint64_t links = 0;  // of the link of the slowest rank
  std::uint64_t trees = 0;  // of a vector through all lanes together; the ranks' own links are left out
  // The rate of a rank in a ring of all ranks: less than `links` where the ring's uplinks are full, more where neighbours
  // in the ring share a host.
  std::uint64_t ranks = 0;
  friend bool operator==(const PathRates&, const PathRates&) = default;
};

/// A descriptor without lanes means: use the fallback; `reason` says why, in a sentence.
struct GroupDescriptor {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::string job;
  std::int64_t expires_at = 0;      // when the tokens expire; seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;  // unless rank 0 renews the group within it, the manager frees the reservation
  std::string reason;
  std::vector<LaneDescriptor> lanes;
  PacketSecurity security = PacketSecurity::off;  // the protection of the lanes' packets
  ExchangePublicKey exchange_key{};  // the manager's key, which unmasks the tokens' secrets; only with security
  PathRates rates{};
  std::uint64_t fence = 0;  // number of the manager's leadership; 0: of a manager without fences
  [[nodiscard]] bool empty() const noexcept { return lanes.empty(); }
  /// Returns the part that `rank` needs: the same lanes, with one entry each.
  [[nodiscard]] GroupDescriptor for_rank(std::uint32_t rank) const;
};

[[nodiscard]] nlohmann::json to_json(const GroupDescriptor& descriptor);
/// Errc::corrupt names the member that is missing or out of bounds.
[[nodiscard]] Result<GroupDescriptor> group_descriptor_from_json(const nlohmann::json& json);

}  // namespace tributary
