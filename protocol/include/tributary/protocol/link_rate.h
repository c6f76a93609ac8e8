#pragma once
#include <cstdint>

namespace tributary {

/// The greatest rate of a rank's or an aggregator's link, in bits per second.
inline constexpr std::uint64_t kLinkRateMax = 1'000'000'000'000'000;

}  // namespace tributary
