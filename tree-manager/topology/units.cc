#include "tree-manager/topology/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace tributary::manager {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kRates{Unit{"bit/s", 1}, Unit{"kbit/s", 1'000}, Unit{"Mbit/s", 1'000'000},
                            Unit{"Gbit/s", 1'000'000'000}, Unit{"Tbit/s", 1'000'000'000'000}};
constexpr std::array kBytes{Unit{"B", 1},
                            Unit{"KiB", 1ULL << 10},
                            Unit{"MiB", 1ULL << 20},
                            Unit{"GiB", 1ULL << 30},
                            Unit{"TiB", 1ULL << 40},
                            Unit{"kB", 1'000},
                            Unit{"MB", 1'000'000},
                            Unit{"GB", 1'000'000'000},
                            Unit{"TB", 1'000'000'000'000}};
constexpr std::array kDurations{Unit{"ms", 1}, Unit{"s", 1'000}, Unit{"min", 60'000}, Unit{"h", 3'600'000}};

constexpr double kQuantityMax = 1e15;  // far above any real one, far below where a double loses whole numbers

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (std::size_t i = 0; i < units.size(); ++i) {
    names += i == 0 ? "" : (i + 1 == units.size() ? " or " : ", ");
    names += units[i].name;
  }
  return names;
}

Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::string_view example) {
  const auto bad = [&](const std::string& why) {
    return fail(Errc::bad_config, "'" + std::string(text) + "' " + why + "; write a number with " + names_of(units) +
                                      ", for example " + std::string(example));
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return bad("does not begin with a number");
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) return bad("has no unit");
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    const double value = number * static_cast<double>(known.factor);
    if (value > kQuantityMax) return bad("is too large");
    if (number > 0 && value < 1) return bad("is too small");
    return static_cast<std::uint64_t>(std::llround(value));
  }
  return bad("has the unit '" + std::string(unit) + "', which is not known here");
}

std::string text_of(std::uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace

Result<std::uint64_t> parse_rate(std::string_view text) {
  return parse(text, kRates, "100Gbit/s");
}
Result<std::uint64_t> parse_bytes(std::string_view text) {
  return parse(text, kBytes, "256MiB");
}
Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurations, "10s");
  if (!value) return std::unexpected(value.error());
  return std::chrono::milliseconds(*value);
}

std::string rate_text(std::uint64_t bits_per_second) {
  return text_of(bits_per_second, kRates);
}
std::string bytes_text(std::uint64_t bytes) {
  return text_of(bytes, kBytes);
}
std::string duration_text(std::chrono::milliseconds duration) {
  return text_of(static_cast<std::uint64_t>(duration.count()), kDurations);
}

}  // namespace tributary::manager
