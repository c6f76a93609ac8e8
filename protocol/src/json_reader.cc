#include "tributary/protocol/json_reader.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tributary {
namespace {

Status too_much(const char* what, std::size_t most) {
  return fail(Errc::corrupt, std::string("the JSON has more than ") + std::to_string(most) + " " + what);
}

/// Counts brackets and values without parsing. Up to the first mistake in a text it finds the same strings as the
/// parser, which stops at this mistake.
Status check_size(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) return too_much("bytes", limits.bytes_max);
  std::size_t depth = 0, values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') {
      if (++depth > limits.depth_max) return too_much("arrays and objects within each other", limits.depth_max);
      ++values;
    }
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == ',') ++values;
    if (values > limits.values_max) return too_much("values", limits.values_max);
  }
  return {};
}

}  // namespace

Result<nlohmann::json> read_json(std::string_view text, const JsonLimits& limits) {
  if (auto ok = check_size(text, limits); !ok) return std::unexpected(ok.error());
  auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return fail(Errc::corrupt, "the text is not valid JSON");
  return parsed;
}

nlohmann::json json_or_discarded(std::string_view text, const JsonLimits& limits) {
  auto read = read_json(text, limits);
  return read ? std::move(*read) : nlohmann::json(nlohmann::json::value_t::discarded);
}

}  // namespace tributary
