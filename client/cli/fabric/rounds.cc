#include "client/cli/fabric/rounds.h"

#include <bit>

#include "tributary/protocol/assert.h"

namespace tributary::cli::fabric {

Rounds::Rounds(std::uint32_t hosts) noexcept : hosts_(hosts) {
  if (hosts < 2) return;
  if (hosts <= kAllPairsHostsMax) {
    count_ = hosts % 2 == 0 ? hosts - 1 : hosts;
    return;
  }
  powers_ = static_cast<std::uint32_t>(std::bit_width(hosts - 1));
  // If the number of hosts is no power of two, some hosts have few partners. The second half of the rounds numbers the
  // hosts from the middle on, which gives these hosts other partners.
  count_ = std::has_single_bit(hosts) ? powers_ : 2 * powers_;
}

std::optional<std::uint32_t> Rounds::partner(std::uint32_t round, std::uint32_t host) const noexcept {
  TRIBUTARY_ASSERT(round < count_ && host < hosts_, "round {} of {}, host {} of {}", round, count_, host, hosts_);
  return powers_ == 0 ? in_all_pairs(round, host) : in_powers(round, host);
}

/// Hosts sit around a table, and move on by one seat in each round. If their number is even, the last host stays.
std::optional<std::uint32_t> Rounds::in_all_pairs(std::uint32_t round, std::uint32_t host) const noexcept {
  const std::uint32_t seats = hosts_ % 2 == 0 ? hosts_ - 1 : hosts_;  // odd
  if (host == seats) return round * ((seats + 1) / 2) % seats;
  const std::uint32_t other = (round + seats - host) % seats;
  if (other != host) return other;
  return hosts_ % 2 == 0 ? std::optional(seats) : std::nullopt;
}

std::optional<std::uint32_t> Rounds::in_powers(std::uint32_t round, std::uint32_t host) const noexcept {
  const std::uint32_t moved = round < powers_ ? 0 : hosts_ / 2;
  const std::uint32_t other = (host + moved) % hosts_ ^ 1U << round % powers_;
  if (other >= hosts_) return std::nullopt;
  return (other + hosts_ - moved) % hosts_;
}

}  // namespace tributary::cli::fabric
