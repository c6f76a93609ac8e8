#include "service-kit/yaml_text.h"

#include "service-kit/mistake.h"

namespace tributary::service {

std::string place_of(std::string_view file, const YAML::Mark& mark) {
  return std::string(file) + (mark.is_null() ? "" : ":" + std::to_string(mark.line + 1));
}

Result<YAML::Node> parse_yaml(const std::string& text, std::string_view file) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return refuse({.where = place_of(file, error.mark), .why = "this is no YAML: " + error.msg});
  }
}

}  // namespace tributary::service
