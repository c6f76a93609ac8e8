#include "tests/unit/manager/store_records.h"

#include <gtest/gtest.h>

namespace tributary::manager {

AggregatorRecord aggregator_record(const std::string& name, std::uint64_t incarnation) {
  return {.name = name,
          .incarnation = incarnation,
          .host = "h-" + name,
          .data = {{.at = {"10.0.0.1", 7471}}, {.at = {"::2", 7473}, .live = incarnation % 2 == 1}},
          .http = {"10.0.0.1", 7472},
          .memory_bytes = (1ULL << 40) + incarnation,
          .children_max = 17,
          .line_rate_bits_per_second = 100'000'000'000,
          .version = "0.1.0",
          .draining = incarnation % 2 == 1,
          .resuming = incarnation % 2 == 0,
          .expired = incarnation % 3 == 1,
          .registered_at = 1'700'000'000,
          .exchange_key = "key",
          .data_changes = static_cast<std::uint32_t>(incarnation)};
}

GroupRecord group_record(std::uint64_t id, std::uint32_t epoch) {
  GroupRecord record{.id = id,
                     .job = "job \"ä\" " + std::to_string(id),
                     .hosts = {"a", "b", "c"},
                     .lanes_wanted = 1,
                     .window = 32,
                     .segment_bytes = 65536,
                     .levels_wanted = 2,
                     .epoch = epoch,
                     .lanes = {},
                     .reason = "because",
                     .failed = {{"x", 7, 1'700'000'000, 5}},
                     .created_at = 1'700'000'001,
                     .adopted_at = 1'700'000'002,
                     .before = {{"y", 8, 9}},
                     .rates = {.links = 10, .trees = 11, .ranks = 12, .doubling = 13, .halving = 14, .spread = 15},
                     .link_rate = 13,
                     .lane_weights = true,
                     .form_senders = FormSenders::members,
                     .rail = "rail-2"};
  LaneTree lane{.rail = "rail-2", .route = 5, .weight = 5, .window = 7};
  lane.nodes = {{.aggregator = "leaf",
                 .incarnation = 3,
                 .host = "h",
                 .data = {"::1", 1},
                 .parent = 1,
                 .up = {"host", 3},
                 .data_changes = 6},
                {.aggregator = "root", .incarnation = 4, .host = "i", .data = {"host", 2}}};
  lane.leaf_of_rank = {0, 1, 0};
  EXPECT_TRUE(lane.finish().has_value());
  record.lanes = {lane};
  return record;
}

}  // namespace tributary::manager
