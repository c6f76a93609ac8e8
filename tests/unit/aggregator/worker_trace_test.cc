// The trace of a worker's segments: each moment, in its order, and only of the wanted job.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/aggregator/worker_rig.h"

namespace tributary::aggregator::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class WorkerTraces : public WorkerTest {
 protected:
  void begin(Host& host, std::uint64_t job = WorkerTrace::kAllJobs) {
    host.worker->trace().begin(job, network_.now() + 1h);
  }
  static std::vector<SegmentMoment> moments_of(const std::vector<SegmentEvent>& events) {
    std::vector<SegmentMoment> moments;
    for (const SegmentEvent& e : events) moments.push_back(e.moment);
    return moments;
  }
  /// Returns the recorded moments, in the order of their times. The last contribution and its effects have one time here.
  static std::vector<SegmentEvent> taken(Host& host) {
    auto events = host.worker->trace().take().events;
    std::ranges::stable_sort(
        events, {}, [](const SegmentEvent& e) { return std::pair(e.at_ns, e.moment != SegmentMoment::came_up); });
    return events;
  }
  void operate(const std::vector<Child*>& ranks, std::uint64_t sequence) {
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank]->contribute(sequence, kSum, bytes_of(floats(rank, 16, sequence)));
      network_.run_for(1ms);
    }
    ASSERT_TRUE(
        run_until([&] { return std::ranges::all_of(ranks, [&](Child* c) { return c->result_of(sequence); }); }));
  }
};

TEST_F(WorkerTraces, ALeafNotesContributionsTheirSumTheResultAndItsWayDown) {
  Host& left = aggregator("left");
  Host& right = aggregator("right");
  Host& root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  operate(ranks, 0);
  for (Host* host : {&left, &root}) begin(*host);
  operate(ranks, 1);
  const auto leaf = taken(left);
  EXPECT_THAT(moments_of(leaf), ElementsAre(SegmentMoment::came_up, SegmentMoment::came_up, SegmentMoment::sent_up,
                                            SegmentMoment::came_down, SegmentMoment::sent_down));
  for (const SegmentEvent& e : leaf) {
    EXPECT_EQ(e.sequence, 1U);
    EXPECT_EQ(e.group, kGroup);
    EXPECT_EQ(e.bytes, 16 * sizeof(float));
  }
  EXPECT_EQ(leaf[0].member, 0U);
  EXPECT_EQ(leaf[1].member, 1U);
  const auto above = taken(root);
  EXPECT_THAT(moments_of(above), ElementsAre(SegmentMoment::came_up, SegmentMoment::came_up, SegmentMoment::sent_down));
  EXPECT_LE(leaf[2].at_ns, above[0].at_ns) << "the contribution leaves before it comes";
  EXPECT_LE(above[2].at_ns, leaf[3].at_ns) << "the result leaves before it comes";
}

TEST_F(WorkerTraces, NotesOnlyTheWantedJob) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  const std::string job = root.worker->lanes().at(0).job;
  begin(root, WorkerTrace::key_of(job + "-other"));
  operate(ranks, 0);
  EXPECT_TRUE(taken(root).empty());
  begin(root, WorkerTrace::key_of(job));
  operate(ranks, 1);
  EXPECT_EQ(taken(root).size(), 3U);
}

}  // namespace
}  // namespace tributary::aggregator::test
