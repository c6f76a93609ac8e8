#include "client/control/json_number.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace tributary::client {

template <class T>
T json_number(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max())
    throw nlohmann::json::type_error::create(302, "this is no whole number within its bounds", &value);
  return value.get<T>();
}

template std::uint8_t json_number(const nlohmann::json& value);
template std::uint16_t json_number(const nlohmann::json& value);
template std::uint32_t json_number(const nlohmann::json& value);
template std::uint64_t json_number(const nlohmann::json& value);

}  // namespace tributary::client
