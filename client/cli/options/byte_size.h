#pragma once
// Sizes as people write them in benchmarks: 8, 4K, 64M.
#include <cstdint>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint64_t kByteSizeMax = 1ULL << 42;
inline constexpr const char* kByteSizeForms = "a size such as 8, 4K, 64M or 1G, up to 4T";

/// Reads digits, then nothing or K, M, G or T (powers of 1024), each of which may be followed by B or iB.
/// Errc::bad_argument says why the text is refused.
[[nodiscard]] Result<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace tributary::cli
