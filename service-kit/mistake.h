#pragma once
// The sentence about a mistake in a configuration. The daemons, the library and the command line use one form for
// files, variables and options:
//
//   WHERE: KEY: 'VALUE': WHY (allowed: ALLOWED)
//   /etc/tributary/aggregator.yaml:12: children_max: 'many': it is no whole number (allowed: 1 to 64)
//   TRIBUTARY_LANES: '17': it is above 16 (allowed: auto, or 1 to 16)
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// The sentence leaves out empty parts.
struct Mistake {
  std::string where{};                 // "FILE:LINE", or a command; empty for variables and for options of daemons
  std::string key{};                   // name of a setting, a variable or an option
  std::optional<std::string> value{};  // the wrong value; the sentence shows it without control characters, and cut
  std::string why;                     // reason such as "it is above 16"
  std::string allowed{};
};

[[nodiscard]] std::string to_string(const Mistake& mistake);

/// Returns Errc::bad_config with the sentence.
[[nodiscard]] std::unexpected<Error> refuse(const Mistake& mistake);

/// Returns the mistake that `key` is not in `names`, with the nearest name. `kind`: a word for the names: "setting".
[[nodiscard]] Mistake unknown_key(std::string where, std::string_view key, std::string_view kind,
                                  std::span<const std::string_view> names);

/// Returns the mistake that the file `path`, which `key` names, cannot be read. `reason` is the system's reason.
[[nodiscard]] Mistake unreadable(std::string key, const std::string& path, const std::string& reason);

/// Several mistakes, one on each line, so that a person can correct all of them at once.
class Mistakes {
 public:
  void add(const Mistake& mistake) { add_line(to_string(mistake)); }
  /// Adds a sentence that has this form already.
  void add_line(const std::string& sentence) { lines_ += (lines_.empty() ? "" : "\n") + sentence; }
  [[nodiscard]] bool none() const noexcept { return lines_.empty(); }
  /// Returns Errc::bad_config with all mistakes, one on each line; success if there are none.
  [[nodiscard]] Status status() const;

 private:
  std::string lines_;
};

}  // namespace tributary::service
