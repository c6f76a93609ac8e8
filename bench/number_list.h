#pragma once
// Numbers on a benchmark's command line, such as "2,4,8".
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace tributary::bench {

/// Ends the process with 64 if the text is no list of numbers.
inline std::vector<std::size_t> numbers(const char* list) {
  std::vector<std::size_t> values;
  for (char* end = nullptr; *list != '\0'; list = *end == ',' ? end + 1 : end) {
    values.push_back(std::strtoull(list, &end, 10));
    if (end == list) std::exit(64);
  }
  return values;
}

}  // namespace tributary::bench
