#pragma once
// Where the ranks of a communicator are, as far as this rank knows. Rank 0 knows all of them, from their introductions.
// Each other rank is told with its welcome of rank 0 and of those that most schedules make it connect to, and asks for
// further ones when it is to connect to them: a table of all members would be N^2 entries over the group.
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
  Endpoint at;                    // of the first way
  std::uint16_t second_port = 0;  // at the same address, where there is a second way
  std::string host_id;            // place in the topology
  [[nodiscard]] Endpoint second() const { return {at.host, second_port}; }
};

/// Most ranks that one message asks for, or tells of.
inline constexpr std::size_t kMembersAskedMax = 1024;

class Directory {
 public:
  Directory(std::uint32_t rank, std::uint32_t nranks) : rank_(rank), nranks_(nranks) {}

  [[nodiscard]] std::uint32_t nranks() const noexcept { return nranks_; }
  /// nullptr: not known, or not yet.
  [[nodiscard]] const Member* find(std::uint32_t rank) const;
  void learn(std::uint32_t rank, Member member);
  /// " on host node-3", for people; empty for a rank that is not known.
  [[nodiscard]] std::string on_host(std::uint32_t rank) const;
  /// Rank 0, once all have come: by rank.
  [[nodiscard]] std::vector<std::string> host_ids() const;
  /// Rank 0: the greatest number of ranks at one address.
  [[nodiscard]] std::uint32_t ranks_of_fullest_address() const;

  /// This rank has to know where `rank` is. Nothing happens for one that is known or was asked for.
  void want(std::uint32_t rank);
  /// The ranks that rank 0 is to be asked for: what is wanted, and the longer this goes on the more of its neighbours,
  /// as a rank that needs many others will need those, too. Ascending; empty: nothing.
  [[nodiscard]] std::vector<std::uint32_t> take_wanted();
  /// Called when something is wanted after nothing was.
  std::function<void()> on_wanted;

 private:
  const std::uint32_t rank_, nranks_;
  std::map<std::uint32_t, Member> members_;
  std::set<std::uint32_t> wanted_, asked_;
  std::uint32_t questions_ = 0;
};

/// The ranks below `rank` that rings, trees, doubling and dissemination make it connect to; of few ranks all of them.
/// The higher rank of a pair connects, so it needs no others. Ascending, at most 3 log2(nranks).
[[nodiscard]] std::vector<std::uint32_t> usual_peers(std::uint32_t rank, std::uint32_t nranks);

/// `[[3,"10.0.0.3",40123,"node-3",0],...]`: the last is the second port. Ranks that are not known are left out.
[[nodiscard]] nlohmann::json members_to_json(const Directory& directory, const std::vector<std::uint32_t>& ranks);
/// Learns what members_to_json() made of another's directory: the ranks. Throws nlohmann::json::exception or
/// std::invalid_argument.
std::vector<std::uint32_t> learn_members(Directory& directory, const nlohmann::json& members);
/// A question: ranks. Errc::corrupt.
[[nodiscard]] Result<std::vector<std::uint32_t>> decode_ranks(const std::string& body, std::uint32_t nranks);

}  // namespace tributary::client
