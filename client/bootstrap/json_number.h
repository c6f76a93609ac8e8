#pragma once
// Whole numbers in JSON that another rank has sent.
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace tributary::client {

/// Throws nlohmann::json::type_error, as get() does for what is no number at all, where it is not whole, negative or
/// too large: get() converts what does not fit, and for a floating-point number that is undefined.
template <std::unsigned_integral T>
[[nodiscard]] T json_number(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max())
    throw nlohmann::json::type_error::create(302, "no whole number in its bounds", &value);
  return value.get<T>();
}

}  // namespace tributary::client
