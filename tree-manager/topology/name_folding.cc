#include "tree-manager/topology/name_folding.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "tree-manager/topology/name_range.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kDigitsMax = 9;  // longer numbers do not fit into a range

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A name, divided at its last number: "rack2-node017.ib" is "rack2-node", "017", ".ib".
struct Parts {
  std::string_view before, digits, after;
  std::uint64_t number = 0;
};

std::optional<Parts> parts_of(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  if (begin == end || end - begin > kDigitsMax) return std::nullopt;
  Parts parts{.before = name.substr(0, begin), .digits = name.substr(begin, end - begin), .after = name.substr(end)};
  std::from_chars(parts.digits.data(), parts.digits.data() + parts.digits.size(), parts.number);
  return parts;
}

/// Returns this number in the form that a range beginning with `first` gives it.
std::string digits_of(std::uint64_t number, std::string_view first) {
  std::string digits = std::to_string(number);
  const bool padded = first.size() > 1 && first.front() == '0';
  if (padded && digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
  return digits;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[k])) {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i, ++k;
      continue;
    }
    const auto number = [](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = number(a, i), y = number(b, k);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (i < a.size() || k < b.size()) return k < b.size();
  return a < b;  // they are equal, or differ in leading zeros
}

std::vector<std::string> fold_names(std::vector<std::string> names) {
  std::ranges::sort(names, natural_less);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::string> folded;
  for (std::size_t begin = 0; begin < names.size();) {
    std::size_t end = begin + 1;
    const auto first = parts_of(names[begin]);
    while (first && end < names.size() && end - begin < kRangeMax) {
      const auto next = parts_of(names[end]);
      if (!next || next->before != first->before || next->after != first->after ||
          next->digits != digits_of(first->number + (end - begin), first->digits)) {
        break;
      }
      ++end;
    }
    if (end == begin + 1) {
      folded.push_back(names[begin]);
    } else {
      folded.push_back(std::string(first->before) + "[" + std::string(first->digits) + "-" +
                       digits_of(first->number + (end - begin) - 1, first->digits) + "]" + std::string(first->after));
    }
    begin = end;
  }
  return folded;
}

}  // namespace tributary::manager
