// Rank 0, or another rank, lies on the control star: about the meeting of the ranks, about trees that come and go, and
// about which rank waits.
#include <algorithm>

#include "tests/fuzz/client/lied_to.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  fuzz::play_lied_to({data + 1, std::min<std::size_t>(size - 1, 1024)}, "g0r" + std::to_string(data[0] % 3),
                     [](FrameType type) { return type >= FrameType::hello && type <= FrameType::peer_hello; },
                     {.aggregators = data[0] % 2U, .kill_an_aggregator = data[0] % 2U != 0});
  return 0;
}
