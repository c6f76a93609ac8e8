// Compares the memory that the engine allocates for a lane with the memory that the manager reserves for it.
#include <gtest/gtest.h>

#include "aggregator/engine/lane.h"
#include "tree-manager/service/allotments.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary {
namespace {

std::uint64_t allocated_by_the_engine(std::uint32_t children, std::uint32_t window, std::uint32_t segment_bytes) {
  const engine::Lane lane(
      {.children = children, .window = window, .segment_bytes = segment_bytes, .ranks = children, .root = true}, 1);
  return lane.memory().size();
}

std::uint64_t reserved_by_the_manager(std::uint32_t children, std::uint32_t window, std::uint32_t segment_bytes) {
  manager::LaneTree lane;
  lane.nodes.push_back({.aggregator = "only", .incarnation = 1});
  lane.nodes.front().children.resize(children);
  manager::GroupRecord group;
  group.window = window;
  group.segment_bytes = segment_bytes;
  group.lanes = {lane};
  manager::Allotments allotments;
  allotments.linger(group, {});
  return allotments.memory_bytes("only", 1);
}

TEST(LaneMemoryParties, TheManagerReservesNoLessThanTheEngineAllocates) {
  struct Flight {
    std::uint32_t window, segment_bytes;
  };
  for (const Flight flight : {Flight{1, kSegmentBytesMin}, Flight{7, 4096}, Flight{kWindowMax, kSegmentBytesMin},
                              Flight{32, 65536}, Flight{2, kSegmentBytesMax}}) {
    for (std::uint32_t children = 1; children <= kChildrenMax; ++children) {
      const std::uint64_t allocated = allocated_by_the_engine(children, flight.window, flight.segment_bytes);
      const std::uint64_t reserved = reserved_by_the_manager(children, flight.window, flight.segment_bytes);
      EXPECT_EQ(allocated, lane_memory_bytes(children, flight.window, flight.segment_bytes));
      EXPECT_GE(reserved, allocated);
      EXPECT_EQ(children_that_fit(reserved, flight.window, flight.segment_bytes), children);
    }
  }
}

}  // namespace
}  // namespace tributary
