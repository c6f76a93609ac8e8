#pragma once
// The reader of JSON from outside for every program of the project. It checks limits before it allocates memory: a
// bracket costs its writer one byte, and its reader about sixty bytes.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary {

struct JsonLimits {
  std::size_t bytes_max = 64U << 20;
  std::size_t depth_max = 32;         // depth of nested arrays and objects
  std::size_t values_max = 1U << 20;  // members, elements and the document; each uses at least 16 bytes
};

/// Reads a text. Errc::corrupt: the text passes a limit, which the error names, or is no JSON. Throws only bad_alloc.
[[nodiscard]] Result<nlohmann::json> read_json(std::string_view text, const JsonLimits& limits = {});
/// Reads a text like read_json(), but returns a discarded value (is_discarded()) instead of an error.
[[nodiscard]] nlohmann::json json_or_discarded(std::string_view text, const JsonLimits& limits = {});

}  // namespace tributary
