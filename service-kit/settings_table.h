#pragma once
// A daemon's settings as one table: each row has the name, the allowed values and the help of one member of the
// daemon's struct. The functions here read files and flags by the table, and print the effective configuration.
#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "service-kit/settings_file.h"
#include "service-kit/units.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

template <class Settings>
struct SettingField {
  std::string_view key;
  std::string allowed;  // the allowed values, with unit and bounds
  std::string_view help;
  std::function<Status(Settings&, std::string_view)> read;  // Errc::bad_config says why the text is refused
  std::function<std::string(const Settings&)> write;        // returns a text that read() reads back
  bool list = false;                                        // accepts values separated by commas, or a YAML list
};

/// The value of a flag, which replaces the value in the file. `what` names the flag in errors.
struct Override {
  std::string key;
  std::string value;
  std::string what;  // name such as "--workers"
};

/// The settings that somebody set, by key: the place, the name used there, and the value.
using Written = std::map<std::string, Mistake, std::less<>>;

/// Returns the mistake in `key`: with its place and its value if somebody set it.
[[nodiscard]] Mistake mistake_in(const Written& written, const std::string& key, std::string why, std::string allowed);

/// Reads the file and then the flags into `settings`. Returns what was set.
template <class Settings>
Written read_settings(std::span<const SettingField<Settings>> table, const std::string& yaml, const std::string& file,
                      std::span<const Override> overrides, Settings& settings, Mistakes& mistakes) {
  std::vector<SettingKey> keys;
  for (const auto& field : table) keys.push_back({.name = field.key, .allowed = field.allowed, .list = field.list});
  Written written;
  const auto set = [&](std::size_t key, const std::string& value, const std::string& where) {
    const std::string name(table[key].key);
    written.insert_or_assign(name, Mistake{.where = where, .key = name, .value = value, .why = {}});
    return table[key].read(settings, value);
  };
  read_settings_file(yaml, file, keys, set, mistakes);
  for (const Override& flag : overrides) {
    const auto field = std::ranges::find(table, std::string_view(flag.key), &SettingField<Settings>::key);
    if (field == table.end()) continue;
    Mistake here{.key = flag.what, .value = flag.value, .why = {}, .allowed = field->allowed};
    if (const auto ok = field->read(settings, flag.value); !ok) {
      here.why = ok.error().message;
      mistakes.add(here);
    }
    written.insert_or_assign(flag.key, std::move(here));
  }
  return written;
}

/// Returns `value` in a form that YAML reads as one text.
[[nodiscard]] std::string quoted(const std::string& value);

/// Returns the text of a file for read_settings(): every setting with its meaning, its allowed values and its default.
template <class Settings>
[[nodiscard]] std::string print_settings(std::span<const SettingField<Settings>> table, const Settings& settings) {
  const Settings defaults;
  std::string text;
  for (const auto& field : table) {
    text += (text.empty() ? "" : "\n") + ("# " + std::string(field.help)) + "\n# Allowed: " + field.allowed +
            ". Default: " + quoted(field.write(defaults)) + "\n";
    text += std::string(field.key) + ": " + quoted(field.write(settings)) + "\n";
  }
  return text;
}

/// Functions that make rows of the table, one function for each kind of value.
namespace field {

[[nodiscard]] inline std::unexpected<Error> wrong(std::string why) {
  return fail(Errc::bad_config, std::move(why));
}

/// Makes the row of a quantity. `parse` reads a value with its unit; `text` writes the value and its bounds.
template <class Settings, class T, class Bound, class Parse, class Text>
[[nodiscard]] SettingField<Settings> quantity(std::string_view key, T Settings::* member, Bound low, Bound high,
                                              Parse parse, Text text, std::string_view help) {
  return {.key = key,
          .allowed = text(low) + " to " + text(high),
          .help = help,
          .read = [=](Settings& settings, std::string_view written) -> Status {
            const Result<Bound> value = parse(written);
            if (!value) return std::unexpected(value.error());
            if (*value < low) return wrong("it is below " + text(low));
            if (*value > high) return wrong("it is above " + text(high));
            if constexpr (std::is_arithmetic_v<T>) {
              settings.*member = static_cast<T>(*value);
            } else {
              settings.*member = std::chrono::ceil<T>(*value);
            }
            return {};
          },
          .write = [=](const Settings& settings) { return text(settings.*member); }};
}

template <class Settings>
[[nodiscard]] SettingField<Settings> bytes(std::string_view key, std::uint64_t Settings::* member, std::uint64_t low,
                                           std::uint64_t high, std::string_view help) {
  return quantity(key, member, low, high, parse_bytes, bytes_text, help);
}

template <class Settings>
[[nodiscard]] SettingField<Settings> rate(std::string_view key, std::uint64_t Settings::* member, std::uint64_t high,
                                          std::string_view help) {
  return quantity(key, member, std::uint64_t{0}, high, parse_rate, rate_text, help);
}

/// Makes the row of a time. It rounds a value up to whole units of the member.
template <class Settings, class Duration>
[[nodiscard]] SettingField<Settings> duration(std::string_view key, Duration Settings::* member,
                                              std::chrono::microseconds low, std::chrono::microseconds high,
                                              std::string_view help) {
  return quantity(key, member, low, high, parse_duration, duration_text, help);
}

/// Adds a check of the value that a row has read.
template <class Settings, class Check>
[[nodiscard]] SettingField<Settings> checked(SettingField<Settings> row, std::string allowed, Check check) {
  row.allowed = std::move(allowed);
  row.read = [read = std::move(row.read), check](Settings& settings, std::string_view written) -> Status {
    if (Status ok = read(settings, written); !ok) return ok;
    return check(settings);
  };
  return row;
}

template <class Settings, std::unsigned_integral Number>
[[nodiscard]] SettingField<Settings> count(std::string_view key, Number Settings::* member,
                                           std::type_identity_t<Number> low, std::type_identity_t<Number> high,
                                           std::string_view help) {
  const auto parse = [](std::string_view text) -> Result<Number> {
    const auto value = parse_number<Number>(text);
    if (!value) return wrong("it is no whole number");
    return *value;
  };
  return quantity(key, member, low, high, parse, [](Number value) { return std::to_string(value); }, help);
}

template <class Settings, class Check>
[[nodiscard]] SettingField<Settings> text(std::string_view key, std::string Settings::* member,
                                          const std::string& allowed, std::string_view help, const Check& check) {
  return {.key = key,
          .allowed = allowed,
          .help = help,
          .read = [member, check](Settings& settings, std::string_view written) -> Status {
            if (Status ok = check(written); !ok) return ok;
            settings.*member = std::string(written);
            return {};
          },
          .write = [member](const Settings& settings) { return settings.*member; }};
}

/// Returns a text such as "a, b or c".
[[nodiscard]] std::string alternatives(std::span<const std::string_view> words);

template <class Settings>
[[nodiscard]] SettingField<Settings> choice(std::string_view key, std::string Settings::* member,
                                            std::vector<std::string_view> words, std::string_view help) {
  const std::string allowed = alternatives(words);
  return text(key, member, allowed, help, [words = std::move(words)](std::string_view written) -> Status {
    if (std::ranges::find(words, written) == words.end()) return wrong("it is none of these");
    return {};
  });
}

template <class Settings>
[[nodiscard]] SettingField<Settings> flag(std::string_view key, bool Settings::* member, std::string_view yes,
                                          std::string_view no, std::string_view help) {
  return {.key = key,
          .allowed = std::string(yes) + " or " + std::string(no),
          .help = help,
          .read = [=](Settings& settings, std::string_view written) -> Status {
            if (written != yes && written != no)
              return wrong("it is neither " + std::string(yes) + " nor " + std::string(no));
            settings.*member = written == yes;
            return {};
          },
          .write = [=](const Settings& settings) { return std::string(settings.*member ? yes : no); }};
}

template <class Settings>
[[nodiscard]] SettingField<Settings> endpoint(std::string_view key, Endpoint Settings::* member,
                                              std::string_view help) {
  return {.key = key,
          .allowed = "host:port or [IPv6]:port; [::] is every address of both families; port 0 chooses a free one",
          .help = help,
          .read = [member](Settings& settings, std::string_view written) -> Status {
            auto value = parse_endpoint(written);
            if (!value) return wrong(value.error().message);
            settings.*member = std::move(*value);
            return {};
          },
          .write = [member](const Settings& settings) { return to_string(settings.*member); }};
}

}  // namespace field
}  // namespace tributary::service
