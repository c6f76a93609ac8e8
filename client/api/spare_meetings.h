#pragma once
// The ways by which the ranks of a communicator meet again for another one. The ranks tell each other only what is
// public: an address and a nonce. Each rank derives the secret of the new group itself, from the secret of the old one.
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/control/unique_id.h"

namespace tributary::client {

/// A meeting, as its rank tells the others. `bytes` are those of a unique id with a nonce in the place of the secret.
struct MeetingOffer {
  unsigned char made = 0;  // 0: the rank opened no meeting, and `bytes` mean nothing
  UniqueIdBytes bytes{};
};

/// The ranks of a new communicator, as ranks of the old one, in the order of their new ranks.
using Members = std::vector<std::size_t>;

/// Returns the id by which these members meet at an offer. Its secret is another one for another purpose, nonce, list
/// of members, or number of the attempt. Only a rank of the old communicator can derive it.
[[nodiscard]] Result<UniqueId> id_of_members(const Secret& old, std::string_view purpose, const MeetingOffer& offer,
                                             const Members& members, std::uint32_t attempt);

/// A meeting that this rank has opened for others. Closes it at the end, unless a communicator has taken it.
class OwnMeeting {
 public:
  OwnMeeting() = default;
  explicit OwnMeeting(const UniqueId& id) : id_(id) {}
  OwnMeeting(OwnMeeting&& other) noexcept : id_(std::exchange(other.id_, std::nullopt)) {}
  OwnMeeting& operator=(OwnMeeting&& other) noexcept;
  ~OwnMeeting() { close(); }

  /// Returns what the other ranks may know. Each call makes another nonce.
  [[nodiscard]] Result<MeetingOffer> offer() const;
  /// Lets those in who know this secret, and no others.
  void admit(const Secret& secret);

 private:
  void close() noexcept;

  std::optional<UniqueId> id_;  // empty: no meeting
};

/// The calls of tributary_comm_shrink with the same lowest rank that one preparation allows. A call that fails has used
/// up one meeting, and so a second one can exclude more ranks.
inline constexpr std::size_t kShrinkAttempts = 2;

/// The meetings of all ranks for a shrink. This rank's own listeners are open until a communicator takes them, this
/// object ends, or kMeetingsMax (meeting.h) newer ids of this process close them; a shrink then fails on this rank.
class SpareMeetings {
 public:
  using Offers = std::array<MeetingOffer, kShrinkAttempts>;
  using Own = std::array<OwnMeeting, kShrinkAttempts>;
  SpareMeetings(std::vector<Offers> offers, Own own, std::size_t rank)
      : offers_(std::move(offers)), own_(std::move(own)), used_(offers_.size(), 0), rank_(rank) {}

  /// Returns the id by which these members meet, and uses up one attempt of the first of them. Errc::exhausted: none is
  /// left.
  [[nodiscard]] Result<UniqueId> next(const Secret& old, const Members& members);

 private:
  std::vector<Offers> offers_;
  Own own_;
  std::vector<std::size_t> used_;  // attempts of each rank
  std::size_t rank_;
};

/// The secret of a communicator, and the meetings for its shrink.
struct NextGroups {
  Secret secret{};
  std::unique_ptr<SpareMeetings> spares;  // nullptr: tributary_comm_shrink is not possible
};

/// A unique id that only the ranks of one communicator can read.
struct SealedId {
  Secret nonce{};
  std::array<std::byte, kUniqueIdBytes> bytes{};
  std::array<std::byte, 16> tag{};
};
[[nodiscard]] Result<SealedId> seal_id(const Secret& old, const UniqueIdBytes& id);
/// Errc::denied: another group has sealed this id, or the bytes have changed on their way.
[[nodiscard]] Result<UniqueIdBytes> open_id(const Secret& old, const SealedId& sealed);

}  // namespace tributary::client
