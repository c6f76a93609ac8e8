#pragma once
// Knows where the ranks of a communicator are. Rank 0 knows all of them, from their introductions. Its welcome
// tells each other rank about rank 0 and the ranks to which most schedules make it connect; a rank asks for further
// ones when it is about to connect to them. A table of all members for every rank would be N^2 entries in the
// group.
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::client {

struct Member {
  Endpoint at;                    // the endpoint of the first way
  std::uint16_t second_port = 0;  // the port at the same address, if there is a second way
  std::string host_id;            // place in the topology
  std::uint64_t link_rate = 0;    // rate of its link, in bits per second; 0: not known, or this is not rank 0
  [[nodiscard]] Endpoint second() const { return {at.host, second_port}; }
};

/// The most ranks that one message asks for, or tells of.
inline constexpr std::size_t kMembersAskedMax = 1024;

class Directory {
 public:
  Directory(std::uint32_t rank, std::uint32_t nranks) : rank_(rank), nranks_(nranks) {}

  [[nodiscard]] std::uint32_t nranks() const noexcept { return nranks_; }
  /// nullptr: the rank is not known, or not yet.
  [[nodiscard]] const Member* find(std::uint32_t rank) const;
  void learn(std::uint32_t rank, Member member);
  /// Returns " on host node-3", for people; empty if the rank is not known.
  [[nodiscard]] std::string on_host(std::uint32_t rank) const;
  /// At rank 0, once all ranks have come: host ids by rank.
  [[nodiscard]] std::vector<std::string> host_ids() const;
  /// At rank 0: the least rate of the links that are known, in bits per second; 0: none is.
  [[nodiscard]] std::uint64_t slowest_link() const;
  /// At rank 0: the greatest number of ranks at one address.
  [[nodiscard]] std::uint32_t ranks_of_fullest_address() const;

  /// Says that this rank needs to know where `rank` is. Does nothing if it is known or was asked for.
  void want(std::uint32_t rank);
  /// Returns the ranks to ask rank 0 for: the wanted ones and, the more often this is called, the more of their
  /// neighbours, because a rank that needs many others will need those, too. Ascending; empty if none are wanted.
  [[nodiscard]] std::vector<std::uint32_t> take_wanted();
  /// Called when the first rank is wanted after none was.
  std::function<void()> on_wanted;

 private:
  const std::uint32_t rank_, nranks_;
  std::map<std::uint32_t, Member> members_;
  std::set<std::uint32_t> wanted_, asked_;
  std::uint32_t questions_ = 0;
};

/// The ranks below `rank` to which rings, trees, doubling and dissemination make it connect; of few ranks all of them.
/// The higher rank of a pair connects, so it needs no others. Ascending, at most 3 log2(nranks).
[[nodiscard]] std::vector<std::uint32_t> usual_peers(std::uint32_t rank, std::uint32_t nranks);

/// Returns `[[3,"10.0.0.3",40123,"node-3",0],...]`; the last number is the second port. Leaves out ranks that are not
/// known.
[[nodiscard]] nlohmann::json members_to_json(const Directory& directory, const std::vector<std::uint32_t>& ranks);
/// Learns the members that members_to_json() wrote on another rank, and returns their ranks. Throws
/// nlohmann::json::exception or std::invalid_argument.
std::vector<std::uint32_t> learn_members(Directory& directory, const nlohmann::json& members);
/// Reads the ranks that a question asks for. Errc::corrupt if it is malformed.
[[nodiscard]] Result<std::vector<std::uint32_t>> decode_ranks(const std::string& body, std::uint32_t nranks);

}  // namespace tributary::client
