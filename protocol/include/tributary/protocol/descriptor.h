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
[[nodiscard]] std::string to_string(const Endpoint& endpoint);  // a text such as "10.0.0.1:7471" or "[::1]:7471"
/// Reads "host:port" or "[v6]:port"; Errc::bad_argument says what is missing.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

/// The place where one rank enters one lane.
struct LaneEntry {
  Endpoint aggregator;  // the rank's leaf
  std::string aggregator_name;
  TokenChain tokens;
};

/// The greatest weight of a lane. A lane with less than a 64th of another lane's share is not worth its connections.
inline constexpr std::uint32_t kLaneWeightMax = 64;

struct LaneDescriptor {
  std::uint32_t window = 0;  // number of segments
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels = 0;        // number of aggregators from a rank's leaf to the root, including both
  std::uint32_t weight = 1;        // the lane's part of a group's segments, out of the sum of all lanes' weights
  std::vector<LaneEntry> entries;  // by rank in the manager's answer; only one after for_rank()
};

/// The greatest rate in a descriptor: every reader of JSON can read numbers up to this rate.
inline constexpr std::uint64_t kPathRateMax = 1ULL << 53;

/// The rates of a group's paths through the fabric, in bits per second in each direction; 0: not known.
struct PathRates {
  std::uint64_t links = 0;  // rate of the slowest rank's link
  std::uint64_t trees = 0;  // rate of a vector through all lanes together, without the ranks' own links
  // The rate of a rank in a ring of all ranks: less than `links` if the ring's uplinks are full, more if neighbours in
  // the ring share a host.
  std::uint64_t ranks = 0;
  // The rates of a rank in ways between the ranks that cross uplinks more often than a ring: the bytes that the rank
  // sends, divided by the time of all steps.
  std::uint64_t doubling = 0;  // recursive doubling of all ranks
  std::uint64_t halving = 0;   // halving-doubling of all ranks
  std::uint64_t spread = 0;    // equal parts from each rank to all other ranks at once
  friend bool operator==(const PathRates&, const PathRates&) = default;
};

[[nodiscard]] nlohmann::json to_json(const PathRates& rates);
/// Reads rates. Errc::corrupt names the member that is missing or out of bounds.
[[nodiscard]] Result<PathRates> path_rates_from_json(const nlohmann::json& json);

/// The descriptor. Without lanes it means: use the fallback; `reason` gives the reason in a sentence.
struct GroupDescriptor {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::string job;
  std::int64_t expires_at = 0;      // end of the tokens, in seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;  // rank 0 must renew the group in this time, or the manager frees the reservation
  std::string reason;
  std::vector<LaneDescriptor> lanes;
  PacketSecurity security = PacketSecurity::off;  // the protection of the lanes' packets
  ExchangePublicKey exchange_key{};  // the manager's key, to unmask the tokens' secrets; only with security
  PathRates rates{};
  std::uint64_t fence = 0;  // number of the manager's leadership; 0: the manager has no fences
  [[nodiscard]] bool empty() const noexcept { return lanes.empty(); }
  /// Returns the part that `rank` needs: the same lanes, with one entry each.
  [[nodiscard]] GroupDescriptor for_rank(std::uint32_t rank) const;
};

[[nodiscard]] nlohmann::json to_json(const GroupDescriptor& descriptor);
/// Reads a descriptor. Errc::corrupt names the member that is missing or out of bounds.
[[nodiscard]] Result<GroupDescriptor> group_descriptor_from_json(const nlohmann::json& json);

}  // namespace tributary
