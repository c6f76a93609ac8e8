#pragma once
// Matches offered messages with receives by their tags: a pure state machine. An offer goes to the earliest receive
// that accepts it, and a receive gets the earliest offer that it accepts. So messages of one rank with one tag keep
// their order, as in MPI. Each step takes time that grows with the logarithm of the number of waiting offers and
// receives.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "client/communicator/message.h"

namespace tributary::client {

/// A send with a tag that waits for its receive.
struct Offer {
  std::uint32_t from = 0;
  std::uint32_t tag = 0;
  std::uint64_t number = 0;  // number of the offer among all offers of its sender to this rank
  Signature signature;
};

class TagMatching {
 public:
  /// Takes an offer that has come. Returns the receive that accepts it; if no receive does, keeps the offer.
  [[nodiscard]] std::optional<Message> offered(const Offer& offer);
  /// Takes a call to receive from `source`, or from any rank. Returns the offer that it accepts; if there is none,
  /// keeps the receive and moves from `message`.
  [[nodiscard]] std::optional<Offer> called(std::optional<std::uint32_t> source, Message& message);

  /// Returns how many offers of this rank are kept.
  [[nodiscard]] std::size_t offers_of(std::uint32_t rank) const;
  [[nodiscard]] bool receives_wait() const noexcept { return !receives_.empty(); }
  void fail_receives(const Error& error);
  /// Describes a waiting receive whose call was before `before`; empty if there is no such receive.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Receive {
    std::optional<std::uint32_t> source;
    Message message;
  };
  /// Entries (tag, rank, key): the entries with one tag and rank stand together, in the order of their keys.
  using ByRank = std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>>;
  [[nodiscard]] static std::optional<std::uint64_t> first(const ByRank& order, std::uint32_t tag, std::uint64_t rank);

  std::uint64_t next_ = 0;                                           // the next key: keys number arrivals and calls
  std::map<std::pair<std::uint32_t, std::uint64_t>, Offer> offers_;  // by tag and key
  ByRank offers_from_;
  std::map<std::uint32_t, std::size_t> kept_;  // by rank: how many of its offers are kept
  std::map<std::uint64_t, Receive> receives_;  // by key
  ByRank receives_from_;                       // the rank is kAnyRank for receives from any rank
};

}  // namespace tributary::client
