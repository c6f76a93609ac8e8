#include "tributary/protocol/waiting_room.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tributary {
namespace {

constexpr std::size_t kShare = 8;  // one source's share is an eighth of the places

/// Checks a rule that the owner must keep: no message from a stranger can break such a rule.
void require(bool rule, const char* what) {
  if (!rule) throw std::logic_error(what);
}

}  // namespace

Source source_of(const std::array<std::byte, 16>& address) noexcept {
  constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool four = std::memcmp(address.data(), kMapped.data(), kMapped.size()) == 0;
  Source source;
  std::memcpy(&source.network, address.data() + (four ? sizeof source.network : 0), sizeof source.network);
  return source;
}

WaitingRoom::WaitingRoom(std::size_t places, std::int64_t limit_ns)
    : places_(std::max<std::size_t>(places, 1)),
      share_(std::max<std::size_t>(places / kShare, 1)),
      limit_ns_(limit_ns) {}

std::optional<WaitingRoom::Id> WaitingRoom::makes_room() const {
  if (waiting_.size() < places_) return std::nullopt;
  Ticket ticket = waiting_.begin()->first;
  std::size_t most = 0;
  for (const Source& source : heavy_) {
    const auto& theirs = by_source_.at(source);
    if (theirs.size() < most || (theirs.size() == most && *theirs.begin() > ticket)) continue;
    most = theirs.size();
    ticket = *theirs.begin();
  }
  return waiting_.at(ticket).id;
}

void WaitingRoom::enter(Id id, Source from, std::int64_t now_ns) {
  require(waiting_.size() < places_, "a full waiting room was entered");
  const Ticket ticket = next_++;
  require(tickets_.emplace(id, ticket).second, "a waiting room was entered twice");
  waiting_.emplace(ticket, Waiting{id, from, now_ns + limit_ns_});
  auto& theirs = by_source_[from];
  theirs.insert(ticket);
  if (theirs.size() > share_) heavy_.insert(from);
}

bool WaitingRoom::leave(Id id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return false;
  const auto waiting = waiting_.find(found->second);
  const auto theirs = by_source_.find(waiting->second.from);
  theirs->second.erase(waiting->first);
  if (theirs->second.size() <= share_) heavy_.erase(theirs->first);
  if (theirs->second.empty()) by_source_.erase(theirs);
  waiting_.erase(waiting);
  tickets_.erase(found);
  return true;
}

std::optional<WaitingRoom::Id> WaitingRoom::late(std::int64_t now_ns) const {
  const auto limit = next_limit_ns();
  if (!limit || *limit > now_ns) return std::nullopt;
  return waiting_.begin()->second.id;
}

std::optional<std::int64_t> WaitingRoom::next_limit_ns() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.limit_ns;
}

std::optional<WaitingRoom::Id> WaitingRoom::oldest() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.id;
}

void WaitingRoom::excuse(std::int64_t absence_ns) noexcept {
  for (auto& [ticket, waiting] : waiting_) waiting.limit_ns += absence_ns;
}

std::size_t WaitingRoom::size(Source from) const {
  const auto theirs = by_source_.find(from);
  return theirs == by_source_.end() ? 0 : theirs->second.size();
}

}  // namespace tributary
