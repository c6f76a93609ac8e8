#include "tree-manager/topology/name_range.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

bool belongs_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';
}

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Errc::bad_config, "'" + std::string(text) + "' " + std::string(why));
}

bool whole(std::string_view text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Status check_name(std::string_view name) {
  if (name.empty()) return bad(name, "is no name: it is empty");
  if (name.size() > kNameBytesMax) return bad(name, "is longer than " + std::to_string(kNameBytesMax) + " bytes");
  if (!std::all_of(name.begin(), name.end(), belongs_in_name)) {
    return bad(name, "is no name: only letters, digits, '-', '_', '.' and ':' are accepted");
  }
  return {};
}

Result<std::vector<std::string>> expand_names(std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) {
    if (auto ok = check_name(text); !ok) return std::unexpected(ok.error());
    return std::vector<std::string>{std::string(text)};
  }
  const std::size_t close = text.find(']', open);
  const std::size_t dash = text.find('-', open);
  if (close == std::string_view::npos || dash == std::string_view::npos || dash > close) {
    return bad(text, "has a bracket that is no range; write for example node-[1-16]");
  }
  const std::string_view low_text = text.substr(open + 1, dash - open - 1);
  const std::string_view high_text = text.substr(dash + 1, close - dash - 1);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  if (!whole(low_text, low) || !whole(high_text, high) || high < low || high - low >= kRangeMax) {
    return bad(text, "has a range whose ends are not numbers in ascending order");
  }
  const bool padded = low_text.size() > 1 && low_text.front() == '0';
  std::vector<std::string> names;
  names.reserve(high - low + 1);
  for (std::uint32_t i = low;; ++i) {
    std::string number = std::to_string(i);
    if (padded && number.size() < low_text.size()) number.insert(0, low_text.size() - number.size(), '0');
    std::string name = std::string(text.substr(0, open)) + number + std::string(text.substr(close + 1));
    if (auto ok = check_name(name); !ok) return std::unexpected(ok.error());
    names.push_back(std::move(name));
    if (i == high) break;
  }
  TRIBUTARY_ASSERT(names.size() == std::size_t{high - low} + 1, "{} to {} stand for {} names", low, high, names.size());
  return names;
}

}  // namespace tributary::manager
