// An aggregator that lies to the ranks, and to its parent.
#include <algorithm>

#include "tests/fuzz/client/lied_to.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  fuzz::play_lied_to({data + 1, std::min<std::size_t>(size - 1, 1024)}, "aggregator0",
                     [](FrameType type) { return type <= FrameType::alive; }, {.aggregators = 1U + data[0] % 2U});
  return 0;
}
