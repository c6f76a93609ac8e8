#pragma once
// The choice between MPI's own collectives and Tributary's collectives, for one collective and one class of sizes.
#include <cstdint>
#include <limits>

namespace tributary::mpi {

enum class Way : std::uint8_t { mpi, tributary };

/// Alternates between trials and a decision. Only the number of calls decides which way a call goes, and when the ranks
/// agree, so that all ranks of a communicator go the same way. The first calls go by MPI, the next ones by Tributary,
/// and each rank keeps its quickest time of each way. Then the ranks agree on the times, and the quicker way carries
/// the next kCallsPerDecision calls; after these the trials begin again.
class Trials {
 public:
  static constexpr std::uint32_t kOfMpi = 3;
  static constexpr std::uint32_t kOfTributary = 4;  // the first one also opens connections, and is not counted
  static constexpr std::uint32_t kCallsPerDecision = 4096;

  struct Times {
    double mpi = std::numeric_limits<double>::infinity();  // seconds
    double tributary = std::numeric_limits<double>::infinity();
  };

  /// True if the ranks must agree before the next call.
  [[nodiscard]] bool agree_now() const noexcept { return !decided_ && call_ == kOfMpi + kOfTributary; }
  /// Returns the way of the next call. Call agree() first if agree_now().
  [[nodiscard]] Way way() const noexcept;
  /// Returns the way that was decided; MPI's before a decision.
  [[nodiscard]] Way decision() const noexcept { return decided_ ? decision_ : Way::mpi; }
  /// Counts a call that went by way(), and notes how long it took on this rank.
  void count(double seconds) noexcept;
  /// Returns this rank's quickest times.
  [[nodiscard]] const Times& times() const noexcept { return times_; }
  /// Decides by times that are equal on all ranks.
  void agree(const Times& of_the_slowest_rank) noexcept;

 private:
  std::uint32_t call_ = 0;
  bool decided_ = false;
  Way decision_ = Way::mpi;
  Times times_;
};

/// The longest message that any rank sends with a collective of which each rank knows only its own messages. The ranks
/// agree on it in each of the first kCallsPerAgreement calls, and then in every such call, so between two agreements it
/// may be out of date; but all ranks have the same number.
class LongestMessage {
 public:
  static constexpr std::uint32_t kCallsPerAgreement = 16;

  /// Counts a call with this rank's longest message. Returns true if the ranks must agree before the call.
  [[nodiscard]] bool count(std::uint64_t bytes) noexcept;
  /// Returns this rank's longest message since the last agreement.
  [[nodiscard]] std::uint64_t here() const noexcept { return here_; }
  void agree(std::uint64_t everywhere) noexcept;
  [[nodiscard]] std::uint64_t everywhere() const noexcept { return everywhere_; }

 private:
  std::uint32_t calls_ = 0;
  std::uint64_t here_ = 0;
  std::uint64_t everywhere_ = 0;
};

/// Returns the class of a size: its number of bits.
[[nodiscard]] std::uint32_t class_of(std::uint64_t bytes) noexcept;
inline constexpr std::uint32_t kClasses = 65;

}  // namespace tributary::mpi
