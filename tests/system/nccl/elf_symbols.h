#pragma once
// Finds functions that a loaded library does not export, by the library's own symbol table.
#include <string>

namespace tributary::nccl_test {

/// `path` is the path of a loaded library. nullptr if the table was stripped, or has no such function.
[[nodiscard]] void* find_hidden(const std::string& path, const void* exported, const std::string& exported_name,
                                const std::string& wanted);

}  // namespace tributary::nccl_test
