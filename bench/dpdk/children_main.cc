// All children of one lane (children.h) over a device, against an aggregator at its other end.
//   dpdk_children_bench DEVICE CORE SECONDS CHILDREN WINDOW SEGMENT_BYTES OUR_IP THEIR_IP THEIR_PORT THEIR_MAC [rows]
// With `rows` the program sends a window of one child, then of the next; else one packet of each child in turn.
// Prints the number of results that came back, in millions a second, and stays for two more seconds, unless it is
// ended. Checks the numbers of the first result.
#include <cstdio>
#include <cstdlib>

#include "bench/dpdk/children.h"
#include "bench/dpdk/start.h"

namespace {

using namespace tributary;
using namespace std::chrono_literals;

int run(char** a, bool in_rows) {
  const auto device = bench::open_device(a[1], a[7], a[2]);
  if (!device) return 1;
  const bench::ChildrenSetting setting{.window = static_cast<std::uint32_t>(std::atoi(a[5])),
                                       .segment_bytes = static_cast<std::uint32_t>(std::atoi(a[6])),
                                       .flow = bench::flow_to(*device, a[8], a[9], a[10]),
                                       .in_rows = in_rows};
  bench::Children children(*device, static_cast<std::size_t>(std::atoi(a[4])), setting);
  if (!children.connect([] {})) return std::fprintf(stderr, "no connection\n"), 1;
  static_cast<void>(children.exchange(500ms));
  const auto seconds = std::chrono::duration<double>(std::atof(a[3]));
  const std::uint64_t results =
      children.exchange(std::chrono::duration_cast<bench::Children::Clock::duration>(seconds));
  if (children.wrong()) return std::fprintf(stderr, "something came back that is wrong\n"), 1;
  bench::tell(results, seconds.count());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 11 && count != 12) return 64;
  return run(arguments, count == 12);
}
