#pragma once
// The addresses of the ranks of a communicator. Rank 0 knows all of them, from their introductions. Its welcome tells
// each other rank the addresses of rank 0 and of the ranks to which most schedules make it connect. A rank asks for
// further addresses when it wants to connect to further ranks. If every rank had a table of all members, the group
// would have N^2 entries.
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "client/control/witnesses.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::client {

struct Member {
  Endpoint at;                    // the endpoint of the first way
  std::uint16_t second_port = 0;  // the port at the same address, if there is a second way
  std::string host_id;            // place in the topology
  std::uint64_t link_rate = 0;    // rate of its link, in bits per second; 0: not known; known only on rank 0
  std::string rail{};             // rail of its only device; empty: several devices, or not known; only on rank 0
  ProcessPlace process{};         // only on rank 0
  [[nodiscard]] Endpoint second() const { return {at.host, second_port}; }
};

/// The most ranks for which one message asks, or which one message describes.
inline constexpr std::size_t kMembersAskedMax = 1024;

class Directory {
 public:
  Directory(std::uint32_t rank, std::uint32_t nranks) : rank_(rank), nranks_(nranks) {}

  [[nodiscard]] std::uint32_t nranks() const noexcept { return nranks_; }
  /// Returns the member; nullptr: this rank does not know its address, or not yet.
  [[nodiscard]] const Member* find(std::uint32_t rank) const;
  void learn(std::uint32_t rank, Member member);
  /// Returns a text such as " on host node-3", for people; empty if the rank's place is not known.
  [[nodiscard]] std::string on_host(std::uint32_t rank) const;
  /// Returns, on rank 0 after all ranks have come, the host ids by rank.
  [[nodiscard]] std::vector<std::string> host_ids() const;
  /// Returns, on rank 0, the least known rate of a link, in bits per second; 0: no rate is known.
  [[nodiscard]] std::uint64_t slowest_link() const;
  /// Returns, on rank 0, the rail that all members name; empty: a member names none, or another.
  [[nodiscard]] std::string common_rail() const;
  /// Returns, on rank 0, which ranks see which others' processes.
  [[nodiscard]] Witnesses witnesses() const;
  /// Returns, on rank 0, the greatest number of ranks at one address.
  [[nodiscard]] std::uint32_t ranks_of_fullest_address() const;

  /// Notes that this rank needs the address of `rank`. Does nothing if it knows the address or has asked for it.
  void want(std::uint32_t rank);
  /// Returns the ranks for the next question to rank 0: the wanted ranks and, with each call, more of their neighbours,
  /// because a rank that needs many other ranks will probably need these neighbours, too. Ascending; empty if no rank
  /// is wanted.
  [[nodiscard]] std::vector<std::uint32_t> take_wanted();
  /// Called when a rank is wanted, and no rank was wanted before.
  std::function<void()> on_wanted;

 private:
  const std::uint32_t rank_, nranks_;
  std::map<std::uint32_t, Member> members_;
  std::set<std::uint32_t> wanted_, asked_;
  std::uint32_t questions_ = 0;
};

/// Returns the ranks below `rank` to which rings, trees, doubling and dissemination make it connect; in a small group,
/// all lower ranks. The higher rank of a pair connects, so it needs only lower ranks. Ascending, at most 3
/// log2(nranks).
[[nodiscard]] std::vector<std::uint32_t> usual_peers(std::uint32_t rank, std::uint32_t nranks);

/// Returns `[[3,"10.0.0.3",40123,"node-3",0],...]`; the last number is the second port. Leaves out ranks that are not
/// known.
[[nodiscard]] nlohmann::json members_to_json(const Directory& directory, const std::vector<std::uint32_t>& ranks);
/// Learns the members that members_to_json() wrote on another rank, and returns their ranks. Throws
/// nlohmann::json::exception or std::invalid_argument.
std::vector<std::uint32_t> learn_members(Directory& directory, const nlohmann::json& members);
/// Reads the ranks in a question. Errc::corrupt: the question is malformed.
[[nodiscard]] Result<std::vector<std::uint32_t>> decode_ranks(const std::string& body, std::uint32_t nranks);

}  // namespace tributary::client
