#pragma once
// "node-[01-16]" stands for sixteen names, so that a large fabric fits on a page.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::manager {

inline constexpr std::uint32_t kRangeMax = 1U << 20;  // names in one range

/// Returns one name, or all names of one bracketed range; leading zeros give the width of all numbers. Names are 1 to
/// 63 bytes of letters, digits, '-', '_', '.' and ':'. Errc::bad_config names the mistake.
[[nodiscard]] Result<std::vector<std::string>> expand_names(std::string_view text);
[[nodiscard]] Status check_name(std::string_view name);

}  // namespace tributary::manager
