#include "client/cli/doctor/kernel_text.h"

#include <algorithm>
#include <charconv>

namespace tributary::cli::doctor {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::vector<std::string_view> parts(std::string_view text, std::string_view ends) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(ends), text.size());
    if (end > 0) all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

}  // namespace

std::vector<std::string_view> lines_in(std::string_view text) {
  return parts(text, "\n");
}

std::vector<std::string_view> words_in(std::string_view line) {
  return parts(line, kBlanks);
}

std::optional<std::string_view> line_after(std::string_view text, std::string_view name) {
  for (const std::string_view line : lines_in(text)) {
    if (line.starts_with(name)) return without_blanks(line.substr(name.size()));
  }
  return std::nullopt;
}

std::uint64_t first_number(std::string_view text) {
  std::uint64_t value = 0;
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::uint32_t> numbers_in_list(std::string_view text) {
  constexpr std::uint32_t kMax = 65'536;
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : parts(text, ",\n ")) {
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(first_number(part), kMax));
    const std::size_t dash = part.find('-');
    const auto last = dash == std::string_view::npos
                          ? first
                          : static_cast<std::uint32_t>(std::min<std::uint64_t>(first_number(part.substr(dash)), kMax));
    for (std::uint32_t i = first; i <= last && numbers.size() < kMax; ++i) numbers.push_back(i);
  }
  return numbers;
}

std::optional<std::string> variable_in(std::string_view environment, std::string_view name) {
  for (const std::string_view one : parts(environment, std::string_view("\0", 1))) {
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return std::string(one.substr(name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace tributary::cli::doctor
