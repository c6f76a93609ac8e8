#pragma once
// The one way in which JSON that others wrote is read: bounded before anything is allocated. Five million brackets are
// a few bytes of somebody else's each, and some sixty of ours.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary {

struct JsonLimits {
  std::size_t bytes_max = 64U << 20;
  std::size_t depth_max = 32;         // arrays and objects within each other
  std::size_t values_max = 1U << 20;  // members, elements, the whole: 16 bytes each at least
};

/// Errc::corrupt says which limit was passed, or that it is no JSON. Does not throw but for want of memory.
[[nodiscard]] Result<nlohmann::json> read_json(std::string_view text, const JsonLimits& limits = {});
/// The same where the caller sees by the type that it is nothing: then it is discarded (is_discarded()).
[[nodiscard]] nlohmann::json json_or_discarded(std::string_view text, const JsonLimits& limits = {});

}  // namespace tributary
