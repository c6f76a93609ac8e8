#pragma once
// Every program of the project reads JSON from outside here: limits are checked before anything is allocated. A
// bracket costs its writer one byte, and its reader about sixty.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary {

struct JsonLimits {
  std::size_t bytes_max = 64U << 20;
  std::size_t depth_max = 32;         // nested arrays and objects
  std::size_t values_max = 1U << 20;  // members, elements and the document itself: at least 16 bytes each
};

/// Errc::corrupt says which limit was passed, or that the text is no JSON. Throws only when memory runs out.
[[nodiscard]] Result<nlohmann::json> read_json(std::string_view text, const JsonLimits& limits = {});
/// Like read_json(), but returns a discarded value (is_discarded()) in place of an error.
[[nodiscard]] nlohmann::json json_or_discarded(std::string_view text, const JsonLimits& limits = {});

}  // namespace tributary
