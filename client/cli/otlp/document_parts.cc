#include "client/cli/otlp/document_parts.h"

#include <nlohmann/json.hpp>

#include "tributary/tributary.h"

namespace tributary::cli {

using nlohmann::json;

json otlp_attribute(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

json otlp_attribute(const std::string& key, std::uint64_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

json otlp_scope() {
  return {{"name", "tributary"},
          {"version", std::to_string(TRIBUTARY_VERSION_MAJOR) + "." + std::to_string(TRIBUTARY_VERSION_MINOR) + "." +
                          std::to_string(TRIBUTARY_VERSION_PATCH)}};
}

std::string otlp_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tributary::cli
