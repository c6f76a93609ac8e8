#pragma once
// Reads one setting of the library, for a program that needs it beside the library.
#include <string>
#include <string_view>

namespace tributary::service {

/// Returns the value of `variable` or, if it is not set, the value of `key` in the file that `file_variable` names;
/// else an empty text. Commas join the entries of a list. Looks for no mistakes: the library reports these.
[[nodiscard]] std::string one_setting(const char* variable, const char* file_variable, std::string_view key);

}  // namespace tributary::service
