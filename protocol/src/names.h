#pragma once
// Texts that must fit into fields of a fixed size.
#include <cstddef>
#include <string_view>

namespace tributary {

/// Cuts a text after its last whole character of UTF-8 within `bytes_max`.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t bytes_max) noexcept;

}  // namespace tributary
