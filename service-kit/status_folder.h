#pragma once
// Names that the library and `tributary dump` share: the folder in which the processes of a user have their status ports,
// and the files of flight records.
#include <unistd.h>

#include <algorithm>
#include <string>

namespace tributary::service {

inline constexpr const char* kStatusFolderVariable = "TRIBUTARY_STATUS_DIR";

/// Returns the folder if no setting names one.
[[nodiscard]] inline std::string default_status_folder() {
  return "/tmp/tributary-" + std::to_string(::geteuid());
}

/// Returns the text as a part of a file's name: characters other than letters and digits of ASCII, - and _ become _.
[[nodiscard]] inline std::string file_name_of(std::string text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  std::ranges::replace_if(text, [&](char c) { return !is_plain(c); }, '_');
  return text;
}

}  // namespace tributary::service
