// The lines of strangers that connect to the port where rank 0 of `tributary perf` hands out the unique id, and of
// strangers that answer there. An accepted line must equal the line that Tributary would write.
#include <algorithm>
#include <cstdlib>

#include "client/cli/perf/id_lines.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  if (const auto question = cli::read_question(line)) {
    const auto again = cli::read_question(cli::to_line(*question));
    if (!again || again->rank != question->rank || again->ranks != question->ranks || again->job != question->job)
      std::abort();
  }
  if (const auto id = cli::read_id(line)) {
    std::string small = line;
    std::ranges::transform(small, small.begin(),
                           [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    if (cli::to_line(*id) != small) std::abort();
  }
  if (const auto reason = cli::read_refusal(line); reason && cli::refusal_line(*reason) != line) std::abort();
  return 0;
}
