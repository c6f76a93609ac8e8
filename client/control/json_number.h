#pragma once
// Reads whole numbers from JSON that another rank has sent.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace tributary::client {

/// Reads unsigned integers of 8, 16, 32 and 64 bits. Throws nlohmann::json::type_error if the value is no number, as
/// get() does. It also throws if the value is not whole, negative or too large: get() would convert such a number, and
/// the conversion of a floating-point number can be undefined.
template <class T>
[[nodiscard]] T json_number(const nlohmann::json& value);

extern template std::uint8_t json_number(const nlohmann::json& value);
extern template std::uint16_t json_number(const nlohmann::json& value);
extern template std::uint32_t json_number(const nlohmann::json& value);
extern template std::uint64_t json_number(const nlohmann::json& value);

}  // namespace tributary::client
