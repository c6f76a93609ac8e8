#pragma once
// Reads a file of settings: YAML, one map of keys and values. The daemons and the library use it. It collects all
// mistakes, so that a person can correct a file in one go.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// A key that the file may have.
struct SettingKey {
  std::string_view name;
  std::string_view allowed;  // for people
  bool list = false;         // a YAML list is taken, too: its entries, joined by commas
};

/// The mistakes in a file, as sentences, each with its place in the file.
class Mistakes {
 public:
  void add(const std::string& mistake) { lines_ += (lines_.empty() ? "" : "\n") + mistake; }
  [[nodiscard]] bool none() const noexcept { return lines_.empty(); }
  /// Returns Errc::bad_config with every mistake, one a line.
  [[nodiscard]] Status status() const;

 private:
  std::string lines_;
};

/// Sets the key of this index in the list of keys. `where` begins the error: "FILE:LINE: KEY".
using SetValue = std::function<Status(std::size_t key, const std::string& value, const std::string& where)>;

/// Gives every value of `yaml` to `set`. An unknown key, a key that is set twice, and a structure in place of a value
/// are mistakes, and so are the errors of `set`; `file` names the file in them.
void read_settings_file(const std::string& yaml, const std::string& file, std::span<const SettingKey> keys,
                        const SetValue& set, Mistakes& mistakes);

/// Returns the entries between the commas, without spaces around them; one empty entry for an empty text.
[[nodiscard]] std::vector<std::string_view> list_entries(std::string_view list);

/// Returns the whole content of a file. Errc::io has the system's reason, or says that it is longer than bytes_max.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

inline constexpr std::size_t kSettingsFileBytesMax = 1U << 20;

}  // namespace tributary::service
