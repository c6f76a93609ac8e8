#include "client/cli/options/byte_size.h"

#include <charconv>

namespace tributary::cli {
namespace {

/// Returns the power of 1024 of a suffix; -1: the suffix is unknown.
int power_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const char upper = static_cast<char>(suffix.front() >= 'a' ? suffix.front() - 'a' + 'A' : suffix.front());
  const std::size_t at = kLetters.find(upper);
  const std::string_view rest = suffix.substr(1);
  if (at == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return -1;
  return static_cast<int>(at) + 1;
}

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  const auto bad = [](const char* why) { return fail(Errc::bad_argument, std::string("it ") + why); };
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return bad("is too large");
  if (error != std::errc{}) return bad("does not begin with a whole number");
  const int power = power_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (power < 0) return bad("has an unknown suffix");
  if (number > kByteSizeMax >> (10 * power)) return bad("is too large");
  return number << (10 * power);
}

}  // namespace tributary::cli
