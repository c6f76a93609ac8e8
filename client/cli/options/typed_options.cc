#include "client/cli/options/typed_options.h"

#include <cctype>

#include "client/cli/options/byte_size.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"

namespace tributary::cli {
namespace {

using service::add_parsed;

/// Reduces a name to its letters.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

}  // namespace

bool same_letters(std::string_view left, std::string_view right) {
  return letters_of(left) == letters_of(right);
}

CLI::Option* add_dtype(CLI::App& app, const std::string& names, DType& into, const std::string& help,
                       const std::string& standard) {
  return add_named(app, names, into, {.value = "TYPE", .help = help, .standard = standard}, kDTypeCount,
                   dtype_from_string, [](DType d) { return to_string(d); });
}

void add_lanes(CLI::App& app, std::uint32_t& into, const std::string& help) {
  add_parsed(app, "--lanes", into,
             {.value = "N",
              .help = help + "; auto: as many as save time",
              .allowed = "auto, or 1 to " + std::to_string(kLanesMax),
              .standard = "auto"},
             [](const std::string& text) -> Result<std::uint32_t> {
               if (text == "auto") return 0U;
               return service::parse_within(text, 1U, std::uint32_t{kLanesMax});
             });
}

CLI::Option* add_bytes(CLI::App& app, const std::string& names, std::uint64_t& into, const std::string& help,
                       const std::string& standard) {
  return add_parsed(app, names, into, {.value = "BYTES", .help = help, .allowed = kByteSizeForms, .standard = standard},
                    parse_byte_size);
}

Result<std::uint64_t> parse_rate_within(const std::string& text, std::uint64_t low, std::uint64_t high) {
  auto rate = service::parse_rate(text);
  if (rate && *rate < low) return fail(Errc::bad_argument, "it is below " + service::rate_text(low));
  if (rate && *rate > high) return fail(Errc::bad_argument, "it is above " + service::rate_text(high));
  return rate;
}

}  // namespace tributary::cli
