// The manager's answer, and endpoints in text.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tributary/protocol/descriptor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tributary::parse_endpoint(text);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return 0;
  if (const auto descriptor = tributary::group_descriptor_from_json(json)) {
    const auto again = tributary::group_descriptor_from_json(tributary::to_json(*descriptor));
    if (!again) std::abort();
  }
  return 0;
}
