#pragma once
// The order in which hosts measure each other, two by two: in each round a host has one partner at most, so no two
// measurements meet on a host's link.
#include <cstdint>
#include <optional>

namespace tributary::cli::fabric {

/// Up to so many hosts are measured each with each, in as many rounds. More hosts are measured in rounds that grow by
/// their number's logarithm: 15 for 32,768.
inline constexpr std::uint32_t kAllPairsHostsMax = 16;

class Rounds {
 public:
  explicit Rounds(std::uint32_t hosts) noexcept;
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// nullopt: the host has no partner in this round.
  [[nodiscard]] std::optional<std::uint32_t> partner(std::uint32_t round, std::uint32_t host) const noexcept;

 private:
  [[nodiscard]] std::optional<std::uint32_t> in_all_pairs(std::uint32_t round, std::uint32_t host) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> in_powers(std::uint32_t round, std::uint32_t host) const noexcept;

  std::uint32_t hosts_ = 0;
  std::uint32_t powers_ = 0;  // rounds at distances 1, 2, 4, ...
  std::uint32_t count_ = 0;
};

}  // namespace tributary::cli::fabric
