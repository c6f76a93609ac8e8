#pragma once
// Reads YAML. An error names file, line, key and the accepted values. The reader keeps the first mistake and goes on
// with defaults, so that code can list a schema's fields one after the other.
#include <yaml-cpp/yaml.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/mistake.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

class YamlErrors {
 public:
  explicit YamlErrors(std::string file) : file_(std::move(file)) {}
  /// `path` has the form "links[3].rate".
  void add(const YAML::Node& at, const std::string& path, const std::string& why) {
    add(at, service::Mistake{.key = path, .why = why});
  }
  /// Adds the file and the line of `at` to the mistake.
  void add(const YAML::Node& at, service::Mistake mistake);
  [[nodiscard]] bool any() const noexcept { return first_.has_value(); }
  [[nodiscard]] Status status() const;

 private:
  std::string file_;
  std::optional<Error> first_;
};

/// Returns a file's whole text. `what` names the file in errors; Errc::bad_config has advice.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::string_view what);

/// The fields of one mapping. Call finish() after the last field: it notes every other key as unknown.
class YamlMap {
 public:
  YamlMap(const YAML::Node& node, std::string path, YamlErrors& errors);

  /// Returns the value, or an undefined node. Marks the key as known.
  [[nodiscard]] YAML::Node take(std::string_view key);
  /// Does the same as take(), and notes a missing key as an error; `what` names the expected value.
  [[nodiscard]] YAML::Node require(std::string_view key, std::string_view what);
  [[nodiscard]] std::string text(std::string_view key, std::string_view what);
  /// Reads the value by `parse`, such as a function of units.h; returns `fallback` if the key is absent. The errors of
  /// `parse` do not name the value; `allowed` lists the accepted values.
  template <class T>
  [[nodiscard]] T parsed(std::string_view key, T fallback, const std::function<Result<T>(std::string_view)>& parse,
                         const std::string& allowed = {});
  void finish();

  [[nodiscard]] std::string path_of(std::string_view key) const;
  void complain(std::string_view key, const std::string& why);

 private:
  YAML::Node node_;
  std::string path_;
  YamlErrors& errors_;
  std::vector<std::string> known_;
};

/// Returns the text of a scalar. For any other node, notes an error and returns nullopt.
[[nodiscard]] std::optional<std::string> scalar(const YAML::Node& node, const std::string& path, YamlErrors& errors);
/// Reads a whole number between low and high.
[[nodiscard]] Result<std::uint64_t> parse_whole_number(std::string_view text, std::uint64_t low, std::uint64_t high);

template <class T>
T YamlMap::parsed(std::string_view key, T fallback, const std::function<Result<T>(std::string_view)>& parse,
                  const std::string& allowed) {
  const YAML::Node node = take(key);
  if (!node.IsDefined()) return fallback;
  const auto value = scalar(node, path_of(key), errors_);
  if (!value) return fallback;
  auto result = parse(*value);
  if (!result) {
    errors_.add(node, {.key = path_of(key), .value = value, .why = result.error().message, .allowed = allowed});
    return fallback;
  }
  return *result;
}

}  // namespace tributary::manager
