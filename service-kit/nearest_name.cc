#include "service-kit/nearest_name.h"

#include <algorithm>
#include <vector>

namespace tributary::service {
namespace {

constexpr std::size_t kNameBytesMax = 64;  // the time of a comparison grows with the product of both lengths

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);  // row i, column j: distance of the first i and j letters
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      const std::size_t changed = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({changed, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names,
                                             std::size_t letters_max) {
  if (name.size() > kNameBytesMax) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t least = letters_max + 1;
  for (const std::string_view known : names) {
    const std::size_t distance = edit_distance(name, known);
    if (distance < least) best = known, least = distance;
  }
  return best;
}

}  // namespace tributary::service
