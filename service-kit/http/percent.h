#pragma once
// Percent escapes of URLs (RFC 3986).
#include <optional>
#include <string>
#include <string_view>

namespace tributary::service {

/// Escapes every byte but letters, digits, "-_.~" and the bytes of `kept`.
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view kept = {});
/// Decodes percent escapes; nullopt if an escape is broken.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

}  // namespace tributary::service
