#include <algorithm>
#include <cstdint>

#include "service-kit/units.h"
#include "tree-manager/topology/import/slurm_tree.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kBracketsMax = 4;
constexpr std::size_t kDigitsMax = 9;
constexpr std::size_t kQuotedBytesMax = 80;

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Errc::bad_config, "'" + std::string(text.substr(0, kQuotedBytesMax)) + "' " + std::string(why));
}

/// Removes the first name with its brackets, and returns it: commas within brackets belong to the name.
std::string_view next_entry(std::string_view& text) {
  std::size_t depth = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '[') ++depth;
    if (text[end] == ']' && depth > 0) --depth;
    if (text[end] == ',' && depth == 0) break;
  }
  const std::string_view entry = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return entry;
}

/// Adds the numbers of a range such as "0-3" or "12", each with its leading zeros.
Status add_numbers(std::string_view part, std::size_t names_max, std::vector<std::string>& numbers) {
  const std::size_t dash = part.find('-');
  const std::string_view low_text = part.substr(0, dash);
  const std::string_view high_text = dash == std::string_view::npos ? low_text : part.substr(dash + 1);
  const auto low = service::parse_number<std::uint32_t>(low_text);
  const auto high = service::parse_number<std::uint32_t>(high_text);
  if (!low || !high || *high < *low || low_text.size() > kDigitsMax || high_text.size() > kDigitsMax) {
    return bad(part, "is neither a number nor a range of ascending numbers");
  }
  if (*high - *low >= names_max - std::min(numbers.size(), names_max)) return bad(part, "stands for too many names");
  for (std::uint32_t i = *low; i <= *high; ++i) {
    std::string number = std::to_string(i);
    if (number.size() < low_text.size()) number.insert(0, low_text.size() - number.size(), '0');
    numbers.push_back(std::move(number));
  }
  return {};
}

/// Expands one entry. The number in the last bracket changes with every name.
Status expand_entry(std::string_view entry, std::size_t names_max, std::vector<std::string>& names) {
  const std::string_view whole = entry;
  std::vector<std::string> made{""};
  for (std::size_t brackets = 0;; ++brackets) {
    const std::size_t open = entry.find('[');
    for (std::string& name : made) name += entry.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = entry.find(']', open);
    if (close == std::string_view::npos) return bad(whole, "has a '[' without its ']'");
    if (brackets == kBracketsMax) return bad(whole, "has more than " + std::to_string(kBracketsMax) + " brackets");
    std::vector<std::string> numbers;
    std::string_view inside = entry.substr(open + 1, close - open - 1);
    do {
      if (auto ok = add_numbers(next_entry(inside), names_max, numbers); !ok) return ok;
    } while (!inside.empty());
    if (made.size() * numbers.size() > names_max) return bad(whole, "stands for too many names");
    std::vector<std::string> longer;
    longer.reserve(made.size() * numbers.size());
    for (const std::string& name : made) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    made = std::move(longer);
    entry.remove_prefix(close + 1);
  }
  if (made.front().contains(']')) return bad(whole, "has a ']' without its '['");
  if (made.size() > names_max - std::min(names.size(), names_max)) return bad(whole, "makes too many names");
  std::ranges::move(made, std::back_inserter(names));
  return {};
}

}  // namespace

Status expand_hostlist(std::string_view text, std::size_t names_max, std::vector<std::string>& names) {
  while (!text.empty()) {
    const std::string_view entry = trimmed(next_entry(text));
    if (entry.empty()) continue;
    if (auto ok = expand_entry(entry, names_max, names); !ok) return ok;
  }
  return {};
}

}  // namespace tributary::manager
