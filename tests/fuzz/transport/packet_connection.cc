// A hostile peer of a packet transport whose packets are not sealed. Each input runs twice, with and without the short
// ways for packets of one frame: both runs must send the same datagrams.
#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/transport/hostile_packets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tributary::fuzz::play_hostile_packets;
  const std::span input(data, std::min<std::size_t>(size, 2048));
  if (play_hostile_packets(input, {.short_ways = true}) != play_hostile_packets(input, {.short_ways = false}))
    std::abort();
  return 0;
}
