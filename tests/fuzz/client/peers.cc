// A rank lies to other ranks: about pieces of collectives, about messages, and about plans and data of the recovery.
#include <algorithm>

#include "tests/fuzz/client/lied_to.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool trees = data[0] % 2 != 0;
  fuzz::play_lied_to({data + 1, std::min<std::size_t>(size - 1, 1024)}, "g0r" + std::to_string((data[0] >> 1U) % 3),
                     [](FrameType type) {
                       return type >= FrameType::peer_hello || type == FrameType::second_way ||
                              type == FrameType::holdings || type == FrameType::recover;
                     },
                     {.aggregators = trees ? 1U : 0U,
                      .kill_an_aggregator = trees,
                      .talk = (data[0] & 16U) != 0,
                      .lose_a_device = (data[0] & 32U) != 0});
  return 0;
}
