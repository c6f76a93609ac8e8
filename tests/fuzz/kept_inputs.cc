#include "tests/fuzz/kept_inputs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

namespace tributary::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Returns nullopt if `digit` is not in 0-9 or a-f.
std::optional<unsigned> value_of(char digit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t at = kDigits.find(digit);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

std::optional<Bytes> from_digits(std::string_view digits) {
  if (digits == "-") return Bytes{};
  if (digits.empty() || digits.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto high = value_of(digits[i]), low = value_of(digits[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(*high << 4U | *low));
  }
  return bytes;
}

}  // namespace

std::expected<std::vector<KeptInput>, std::string> parse_kept_inputs(std::string_view text, const std::string& source) {
  std::vector<KeptInput> inputs;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto malformed = [&](const std::string& why) {
      return std::unexpected(source + ":" + std::to_string(number) + ": " + why);
    };
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos)
      return malformed("a line is a name, a space and bytes in hexadecimal");
    std::string name(line.substr(0, space));
    if (!inputs.empty() && name <= inputs.back().name)
      return malformed("'" + name + "' comes after '" + inputs.back().name + "': names must be sorted and unique");
    auto bytes = from_digits(line.substr(space + 1));
    if (!bytes) return malformed("the bytes of '" + name + "' must be two digits of 0-9a-f each, or '-' for no bytes");
    inputs.push_back({std::move(name), std::move(*bytes)});
  }
  if (inputs.empty()) return std::unexpected(source + ": no input is kept there");
  return inputs;
}

std::expected<std::vector<KeptInput>, std::string> read_kept_inputs(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::unexpected(file.string() + ": the file cannot be opened");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad()) return std::unexpected(file.string() + ": the file cannot be read");
  return parse_kept_inputs(text, file.string());
}

}  // namespace tributary::fuzz
