#pragma once
#include <cstdint>

namespace tributary {

/// No link of a rank or an aggregator carries more, in bits per second.
inline constexpr std::uint64_t kLinkRateMax = 1'000'000'000'000'000;

}  // namespace tributary
