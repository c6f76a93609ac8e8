#pragma once
// Reads a file of settings: YAML, one map of keys and values. The daemons and the library use it. It collects all
// mistakes, so that a person can correct the whole file at once.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/mistake.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

/// A key that may stand in the file.
struct SettingKey {
  std::string_view name;
  std::string_view allowed;  // the allowed values, for people
  bool list = false;         // the value may be a YAML list: its entries are joined by commas
};

/// Sets the key of this index in the list of keys; `where` is "FILE:LINE". The message of an error says only why: the
/// reader adds the rest of the sentence.
using SetValue = std::function<Status(std::size_t key, const std::string& value, const std::string& where)>;

/// Passes every value of `yaml` to `set`. Adds mistakes for unknown keys, keys that are set twice, structures in place
/// of values, and the errors of `set`; `file` is the name of the file in them.
void read_settings_file(const std::string& yaml, const std::string& file, std::span<const SettingKey> keys,
                        const SetValue& set, Mistakes& mistakes);

/// Returns the entries of a list, which commas separate, without spaces around them; one empty entry for an empty text.
[[nodiscard]] std::vector<std::string_view> list_entries(std::string_view list);

/// Returns the whole content of a file. Errc::io has the system's reason, or says that the file is too long.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

inline constexpr std::size_t kSettingsFileBytesMax = 1U << 20;

}  // namespace tributary::service
