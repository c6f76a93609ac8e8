#include "client/plugins/mpi/trials.h"

#include <algorithm>
#include <bit>

namespace tributary::mpi {

Way Trials::way() const noexcept {
  if (decided_) return decision_;
  return call_ < kOfMpi ? Way::mpi : Way::tributary;
}

void Trials::count(double seconds) noexcept {
  if (!decided_ && call_ < kOfMpi) times_.mpi = std::min(times_.mpi, seconds);
  if (!decided_ && call_ > kOfMpi) times_.tributary = std::min(times_.tributary, seconds);
  ++call_;
  if (decided_ && call_ == kCallsPerDecision) *this = Trials{};
}

void Trials::agree(const Times& of_the_slowest_rank) noexcept {
  decision_ = of_the_slowest_rank.tributary <= of_the_slowest_rank.mpi ? Way::tributary : Way::mpi;
  decided_ = true;
  call_ = 0;
}

bool LongestMessage::count(std::uint64_t bytes) noexcept {
  here_ = std::max(here_, bytes);
  const bool first = calls_ < kCallsPerAgreement;
  calls_ = first ? calls_ + 1 : kCallsPerAgreement + (calls_ + 1) % kCallsPerAgreement;
  return first || calls_ == kCallsPerAgreement;
}

void LongestMessage::agree(std::uint64_t everywhere) noexcept {
  everywhere_ = everywhere;
  here_ = 0;
}

std::uint32_t class_of(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(bytes));
}

}  // namespace tributary::mpi
