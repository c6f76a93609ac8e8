#pragma once
// The order in which hosts measure each other, two by two: in each round a host has one partner at most, so no two
// measurements meet on a host's link.
#include <cstdint>
#include <optional>

namespace tributary::cli::fabric {

/// Up to this many hosts measure every pair, in about as many rounds. With more hosts, the number of rounds grows with
/// the logarithm of the number of hosts: 15 rounds for 32,768 hosts.
inline constexpr std::uint32_t kAllPairsHostsMax = 16;

class Rounds {
 public:
  explicit Rounds(std::uint32_t hosts) noexcept;
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// Returns the host's partner in this round; nullopt: it has none.
  [[nodiscard]] std::optional<std::uint32_t> partner(std::uint32_t round, std::uint32_t host) const noexcept;

 private:
  [[nodiscard]] std::optional<std::uint32_t> in_all_pairs(std::uint32_t round, std::uint32_t host) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> in_powers(std::uint32_t round, std::uint32_t host) const noexcept;

  std::uint32_t hosts_ = 0;
  std::uint32_t powers_ = 0;  // rounds at distances 1, 2, 4, ...
  std::uint32_t count_ = 0;
};

}  // namespace tributary::cli::fabric
