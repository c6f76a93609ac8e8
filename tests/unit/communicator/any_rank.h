#pragma once
// A receive from any rank, in the tests of messages.
#include <cstdint>
#include <optional>

namespace tributary::client {

inline constexpr std::optional<std::uint32_t> kAnyRank;

}  // namespace tributary::client
