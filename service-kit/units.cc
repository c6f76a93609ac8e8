#include "service-kit/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace tributary::service {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// The units of bytes, in ascending order, so that the last unit that divides a value is the largest.
constexpr std::array kByteUnits = {Unit{"B", 1},
                                   Unit{"kB", 1'000},
                                   Unit{"KiB", 1ULL << 10},
                                   Unit{"MB", 1'000'000},
                                   Unit{"MiB", 1ULL << 20},
                                   Unit{"GB", 1'000'000'000},
                                   Unit{"GiB", 1ULL << 30},
                                   Unit{"TB", 1'000'000'000'000},
                                   Unit{"TiB", 1ULL << 40}};
constexpr std::array kRateUnits = {Unit{"bit/s", 1}, Unit{"kbit/s", 1'000}, Unit{"Mbit/s", 1'000'000},
                                   Unit{"Gbit/s", 1'000'000'000}, Unit{"Tbit/s", 1'000'000'000'000}};
constexpr std::array kTimeUnits = {Unit{"us", 1}, Unit{"ms", 1'000}, Unit{"s", 1'000'000}, Unit{"min", 60'000'000},
                                   Unit{"h", 3'600'000'000}};
constexpr double kValueMax = 9e15;  // a double is exact for whole numbers below it

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (std::size_t i = 0; i < units.size(); ++i) {
    names += i == 0 ? "" : (i + 1 == units.size() ? " or " : ", ");
    names += units[i].name;
  }
  return names;
}

Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::string_view example) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::bad_config, std::string(why) + "; write a number with " + names_of(units) + ", for example " +
                                      std::string(example));
  };
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number)) return wrong("it does not begin with a number");
  if (number < 0) return wrong("it is negative");
  std::string_view unit(rest, end);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) return wrong("it has no unit");
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    const double value = number * static_cast<double>(known.factor);
    if (value > kValueMax) return wrong("it is too large");
    if (value != std::floor(value)) return wrong("it is no whole number of " + std::string(units.front().name));
    return static_cast<std::uint64_t>(value);
  }
  return wrong("'" + std::string(unit) + "' is no unit for it");
}

std::string text_of(std::uint64_t value, std::span<const Unit> units) {
  const Unit* largest = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) largest = &unit;
  }
  return std::to_string(value / largest->factor) + std::string(largest->name);
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  return parse(text, kByteUnits, "4GiB");
}
Result<std::uint64_t> parse_rate(std::string_view text) {
  return parse(text, kRateUnits, "100Gbit/s");
}
Result<std::chrono::microseconds> parse_duration(std::string_view text) {
  const auto value = parse(text, kTimeUnits, "10s");
  if (!value) return std::unexpected(value.error());
  return std::chrono::microseconds(*value);
}

std::string bytes_text(std::uint64_t bytes) {
  return text_of(bytes, kByteUnits);
}
std::string rate_text(std::uint64_t bits_per_second) {
  return text_of(bits_per_second, kRateUnits);
}
std::string duration_text(std::chrono::microseconds duration) {
  if (duration.count() == 0) return "0s";
  return text_of(static_cast<std::uint64_t>(duration.count()), kTimeUnits);
}

}  // namespace tributary::service
