#pragma once
// Whole numbers in JSON that another rank has sent.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace tributary::client {

/// For the unsigned integers of 8, 16, 32 and 64 bits. Throws nlohmann::json::type_error, as get() does for what is no
/// number at all, where it is not whole, negative or too large: get() converts what does not fit, and for a
/// floating-point number that is undefined.
template <class T>
[[nodiscard]] T json_number(const nlohmann::json& value);

extern template std::uint8_t json_number(const nlohmann::json& value);
extern template std::uint16_t json_number(const nlohmann::json& value);
extern template std::uint32_t json_number(const nlohmann::json& value);
extern template std::uint64_t json_number(const nlohmann::json& value);

}  // namespace tributary::client
