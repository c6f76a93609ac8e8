// `tributary trace` reads the answers of aggregators and ranks: no answer breaks it, and it makes a file of any trace.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "client/cli/trace/alignment.h"
#include "client/cli/trace/chrome_trace.h"
#include "tributary/protocol/assert.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string ranks =
      R"({"format":1,"clock":"here","steady_ns":5000,"calendar_ns":6000,"pid":1,"communicators":[{"job":"j","group":"g",)"
      R"("host":"h","rank":0,"ranks":2,"operations_lost":0,"operations":[],"segments_lost":0,)"
      R"("segments":[[0,1000,9,1,0,5,0,64,0],[3,4000,9,1,0,5,0,64,0]]}]})";
  cli::TraceParts parts;
  TRIBUTARY_ASSERT(cli::add_ranks(parts, ranks), "a rank's answer of {} bytes is refused", ranks.size());
  const bool taken = cli::add_aggregator(parts, text).has_value() || cli::add_ranks(parts, text).has_value();
  if (!taken) return 0;
  const cli::SegmentWays ways(parts);
  const auto offsets = cli::offsets_of(parts, ways);
  cli::shift(parts, offsets);
  std::ostringstream out;
  cli::write_chrome_trace(out, parts, ways, 0, cli::clock_lines(parts, offsets));
  TRIBUTARY_ASSERT(nlohmann::json::accept(out.str()), "the trace of {} ranks is no JSON", parts.ranks.size());
  return 0;
}
