// `tributary trace`: segments find their way through the trees, clocks come together, and the file is a strict trace.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "client/cli/trace/alignment.h"
#include "client/cli/trace/chrome_trace.h"
#include "client/cli/trace/missing_ranks.h"
#include "client/cli/trace/otlp_spans.h"

namespace tributary::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMicrosecond = 1000;
constexpr std::uint64_t kGroup = 9;

SegmentEvent event(SegmentMoment moment, std::int64_t at, std::uint64_t sequence, std::uint32_t member = 0) {
  return {.at_ns = at,
          .group = kGroup,
          .sequence = sequence,
          .operation = sequence / 2,
          .epoch = 1,
          .bytes = 64,
          .member = member,
          .lane = 0,
          .moment = moment};
}

/// Two ranks below a leaf, which is below a root. Rank, leaf and root have clocks of their own.
class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    for (const char* name : {"ranks", "leaf", "root"})
      parts_.clocks.push_back(
          {.name = name, .host = std::string(name) + "-host", .steady = kStart, .calendar = kStart});
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      TracedRank one;
      one.job = "training";
      one.group = "5c0f";
      one.host = "node-1";
      one.rank = rank;
      one.ranks = 2;
      one.pid = 100 + rank;
      parts_.ranks.push_back(one);
    }
    const LaneKey lane{.group = kGroup, .epoch = 1, .lane = 0};
    TracedAggregator leaf, root;
    leaf.name = "leaf";
    leaf.host = "leaf-host";
    leaf.clock = 1;
    leaf.lanes[lane] = {{.rank = 0, .aggregator = {}}, {.rank = 1, .aggregator = {}}};
    root.name = "root";
    root.host = "root-host";
    root.clock = 2;
    root.lanes[lane] = {{.rank = {}, .aggregator = "leaf"}};
    parts_.aggregators = {leaf, root};
  }

  /// Adds a segment whose frames take these times, from `at` on, to participants whose clocks are ahead.
  void run_segment(std::uint64_t sequence, std::int64_t at, const std::function<std::int64_t()>& delay) {
    auto& leaf = parts_.aggregators[0].segments;
    auto& root = parts_.aggregators[1].segments;
    std::int64_t last = 0;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      parts_.ranks[rank].segments.push_back(event(SegmentMoment::sent_up, at, sequence, rank));
      const std::int64_t came = at + delay();
      leaf.push_back(event(SegmentMoment::came_up, came + leaf_ahead_, sequence, rank));
      last = std::max(last, came);
    }
    leaf.push_back(event(SegmentMoment::sent_up, last + leaf_ahead_, sequence));
    last += delay();
    root.push_back(event(SegmentMoment::came_up, last + root_ahead_, sequence, 0));
    root.push_back(event(SegmentMoment::sent_down, last + kMicrosecond + root_ahead_, sequence));
    last += kMicrosecond + delay();
    leaf.push_back(event(SegmentMoment::came_down, last + leaf_ahead_, sequence));
    leaf.push_back(event(SegmentMoment::sent_down, last + leaf_ahead_, sequence));
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      parts_.ranks[rank].segments.push_back(event(SegmentMoment::came_down, last + delay(), sequence, rank));
  }
  void run_segments() {
    std::mt19937 random(7);
    for (std::uint64_t i = 0; i < 50; ++i)
      run_segment(i, kStart + static_cast<std::int64_t>(i) * 500 * kMicrosecond,
                  [&] { return 5 * kMicrosecond + static_cast<std::int64_t>(random() % (80 * kMicrosecond)); });
  }
  /// Adds both ends of a message between the ranks.
  void send_message(std::uint32_t from, std::uint32_t to, std::uint64_t round, std::int64_t sent, std::int64_t came) {
    SegmentEvent e{.at_ns = sent, .sequence = round, .operation = 3, .epoch = from, .member = to};
    e.moment = SegmentMoment::sent_across;
    parts_.ranks[from].segments.push_back(e);
    e.at_ns = came;
    std::swap(e.epoch, e.member);
    e.moment = SegmentMoment::came_across;
    parts_.ranks[to].segments.push_back(e);
  }
  [[nodiscard]] json written() const {
    std::ostringstream out;
    write_chrome_trace(out, parts_, SegmentWays(parts_), kStart, {"a note"});
    return json::parse(out.str());
  }

  static constexpr std::int64_t kStart = 1'000'000'000'000;
  std::int64_t leaf_ahead_ = 0, root_ahead_ = 0;
  TraceParts parts_;
};

TEST_F(TraceTest, ASegmentGoesFromTheRankToTheRootAndBack) {
  run_segment(0, kStart, [] { return kMicrosecond; });
  const auto way = SegmentWays(parts_).way_of({.participant = 1, .event = 0});
  std::vector<std::pair<std::size_t, SegmentMoment>> stops;
  for (const SegmentStop& stop : way) stops.emplace_back(stop.participant, event_at(parts_, stop).moment);
  using enum SegmentMoment;
  EXPECT_THAT(stops, ElementsAre(std::pair(1, sent_up), std::pair(2, came_up), std::pair(2, sent_up),
                                 std::pair(3, came_up), std::pair(3, sent_down), std::pair(2, came_down),
                                 std::pair(2, sent_down), std::pair(1, came_down)));
  EXPECT_EQ(event_at(parts_, way[1]).member, 1U) << "the contribution of this rank";
}

TEST_F(TraceTest, AWayLeavesOutWhatWasNotRecorded) {
  run_segment(0, kStart, [] { return kMicrosecond; });
  parts_.aggregators[1].segments.clear();
  EXPECT_EQ(SegmentWays(parts_).way_of({.participant = 0, .event = 0}).size(), 6U);
  parts_.aggregators.clear();
  EXPECT_EQ(SegmentWays(parts_).way_of({.participant = 0, .event = 0}).size(), 2U);
}

TEST_F(TraceTest, AggregatorsThatNameEachOtherAsChildrenMakeNoEndlessWay) {
  run_segment(0, kStart, [] { return kMicrosecond; });
  parts_.aggregators[0].lanes.begin()->second.push_back({.rank = {}, .aggregator = "root"});
  EXPECT_LT(SegmentWays(parts_).way_of({.participant = 0, .event = 0}).size(), 100U);
  EXPECT_EQ(offsets_of(parts_, SegmentWays(parts_)).size(), 3U);
}

TEST_F(TraceTest, MessagesTellTheDifferenceOfTheClocksWithinItsError) {
  leaf_ahead_ = 3'600'000'000'123;
  root_ahead_ = -77'000'000'456;
  run_segments();
  const auto offsets = offsets_of(parts_, SegmentWays(parts_));
  ASSERT_EQ(offsets.size(), 3U);
  EXPECT_EQ(offsets[0].ahead, 0);
  const std::int64_t ahead[] = {0, leaf_ahead_, root_ahead_};
  for (const std::size_t clock : {1U, 2U}) {
    ASSERT_TRUE(offsets[clock].within.has_value());
    EXPECT_LE(std::abs(offsets[clock].ahead - ahead[clock]), *offsets[clock].within) << clock;
    EXPECT_LE(*offsets[clock].within, 30 * kMicrosecond) << "the least round trip bounds the error";
  }
  const auto lines = clock_lines(parts_, offsets);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("the clock of host leaf-host was ahead by 3600.0000"));
  EXPECT_THAT(lines[0], HasSubstr("with an error of at most "));
}

TEST_F(TraceTest, MessagesOfOneRoundComeInTheirOrder) {
  send_message(0, 1, 7, kStart, kStart + 9 * kMicrosecond);
  send_message(0, 1, 7, kStart + kMicrosecond, kStart + 10 * kMicrosecond);
  const SegmentWays ways(parts_);
  ASSERT_EQ(ways.messages().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ways.messages()[i].sent.event, i);
    EXPECT_EQ(ways.messages()[i].came.event, i);
  }
  parts_.ranks[1].segments.pop_back();
  EXPECT_TRUE(SegmentWays(parts_).messages().empty()) << "nothing tells which of the two has come";
}

TEST_F(TraceTest, MessagesOfOtherGroupsAreOthers) {
  send_message(0, 1, 7, kStart, kStart + kMicrosecond);
  parts_.ranks[1].group = "77aa";
  EXPECT_TRUE(SegmentWays(parts_).messages().empty());
}

TEST_F(TraceTest, MessagesBetweenRanksTellTheDifferenceOfTheirClocks) {
  constexpr std::int64_t kAhead = 3'600'000'000'123;
  parts_.ranks[1].clock = 1;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto later = static_cast<std::int64_t>(i) * kMicrosecond;
    const std::int64_t at = kStart + 100 * later;
    send_message(0, 1, 2 * i, at, at + 5 * kMicrosecond + later + kAhead);
    send_message(1, 0, 2 * i + 1, at + kAhead, at + 6 * kMicrosecond + later);
  }
  const auto offsets = offsets_of(parts_, SegmentWays(parts_));
  ASSERT_TRUE(offsets[1].within.has_value());
  EXPECT_LE(std::abs(offsets[1].ahead - kAhead), *offsets[1].within);
  EXPECT_LE(*offsets[1].within, 6 * kMicrosecond);
}

TEST_F(TraceTest, WithoutMessagesTheCalendarsTellTheDifference) {
  parts_.clocks[1].steady += 5'000'000'000;
  const auto offsets = offsets_of(parts_, SegmentWays(parts_));
  EXPECT_EQ(offsets[1].ahead, 5'000'000'000);
  EXPECT_FALSE(offsets[1].within.has_value());
  EXPECT_THAT(clock_lines(parts_, offsets)[0], HasSubstr("the error is not known"));
}

TEST_F(TraceTest, ClocksThatDriftApartEndTheSearch) {
  run_segments();
  for (auto& e : parts_.aggregators[0].segments) e.at_ns -= (e.at_ns - kStart) / 2;
  const auto offsets = offsets_of(parts_, SegmentWays(parts_));
  ASSERT_TRUE(offsets[1].within.has_value());
  EXPECT_GT(*offsets[1].within, 0);
}

/// Checks a trace as a strict reader does. Returns the number of flows.
std::size_t check(const json& trace) {
  std::map<std::pair<int, int>, double> last, slice_end;
  std::map<std::uint64_t, std::string> flows;
  std::set<int> named;
  for (const json& e : trace.at("traceEvents")) {
    const std::string phase = e.at("ph");
    const std::pair<int, int> thread{e.at("pid"), e.at("tid")};
    if (phase == "M") {
      if (e.at("name") == "process_name") {
        EXPECT_TRUE(named.insert(thread.first).second) << e;
      }
      continue;
    }
    EXPECT_TRUE(named.contains(thread.first)) << e;
    const double ts = e.at("ts");
    if (last.contains(thread)) {
      EXPECT_GE(ts, last[thread]) << e;
    }
    last[thread] = ts;
    if (phase == "X") {
      if (slice_end.contains(thread)) {
        EXPECT_GE(ts, slice_end[thread] - 1e-4) << "slices overlap: " << e;
      }
      slice_end[thread] = ts + e.at("dur").get<double>();
      EXPECT_GT(e.at("dur").get<double>(), 0);
      continue;
    }
    EXPECT_LE(ts, slice_end.at(thread)) << "a flow binds to the slice around it";
    std::string& flow = flows[e.at("id")];
    flow += phase;
    if (phase == "f") {
      EXPECT_EQ(e.at("bp"), "e");
    }
  }
  for (const auto& [id, phases] : flows) {
    EXPECT_EQ(std::ranges::count(phases, 's'), 1) << id;
    EXPECT_EQ(std::ranges::count(phases, 'f'), 1) << id;
  }
  return flows.size();
}

TEST_F(TraceTest, TheFileHasSlicesThatDoNotOverlapAndFlowsWithBothEnds) {
  run_segments();
  for (std::uint64_t i = 0; i < 4; ++i) {
    TracedOperation operation{.number = i,
                              .bytes = 64,
                              .call = "all_reduce of 16 float32 (sum) \"\x01\xFF\"",
                              .path = "in-network",
                              .outcome = "success"};
    operation.queued = kStart - 5000;
    operation.started = kStart + static_cast<std::int64_t>(i) * 100;
    operation.ended = *operation.started + 250;  // it overlaps the next two
    parts_.ranks[0].operations.push_back(operation);
  }
  const json trace = written();
  EXPECT_EQ(check(trace), 100U);
  EXPECT_EQ(trace.at("otherData").at("notes").at(0), "a note");
  std::set<std::string> processes, threads;
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("name") == "process_name") processes.insert(e.at("args").at("name"));
    if (e.at("name") == "thread_name") threads.insert(e.at("args").at("name"));
  }
  EXPECT_THAT(processes, ElementsAre("aggregator leaf on leaf-host", "aggregator root on root-host", "rank 0 on node-1",
                                     "rank 1 on node-1"));
  EXPECT_THAT(threads, ElementsAre("lane 0, group 9, epoch 1", "operations, group 5c0f", "operations, group 5c0f (2)",
                                   "operations, group 5c0f (3)"));
}

TEST_F(TraceTest, AMessageIsAFlowFromRankToRank) {
  send_message(0, 1, 7, kStart, kStart + 3 * kMicrosecond);
  send_message(1, 0, 7, kStart, kStart + 4 * kMicrosecond);
  const SegmentWays ways(parts_);
  ASSERT_EQ(ways.messages().size(), 2U);
  EXPECT_EQ(ways.messages()[0].sent.participant, 0U);
  EXPECT_EQ(ways.messages()[0].came.participant, 1U);
  const json trace = written();
  EXPECT_EQ(check(trace), 2U);
  std::set<std::string> names;
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("ph") == "X") names.insert(e.at("name"));
  }
  EXPECT_THAT(names, ElementsAre("from rank 0", "from rank 1", "to rank 0", "to rank 1"));
}

TEST_F(TraceTest, MomentsAtOneNanosecondKeepTheirOrder) {
  for (int i = 0; i < 5; ++i) run_segment(static_cast<std::uint64_t>(i), kStart, [] { return std::int64_t{0}; });
  EXPECT_EQ(check(written()), 10U);
}

TEST_F(TraceTest, AnOpenOperationLastsUntilTheEndOfTheTrace) {
  TracedOperation operation{.number = 3, .bytes = 64, .call = "barrier", .path = "in-network", .outcome = "open"};
  operation.queued = operation.started = kStart - 3'600'000'000'000;
  parts_.ranks[0].operations.push_back(operation);
  parts_.clocks[0].steady = kStart + 2'000'000'000;
  const json trace = written();
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("name") != "barrier") continue;
    EXPECT_EQ(e.at("ts"), 0);
    EXPECT_EQ(e.at("dur"), 2e6);
    EXPECT_EQ(e.at("args").at("queued_us_before"), 3.6e9);
    return;
  }
  FAIL() << "the operation is missing";
}

TEST_F(TraceTest, TheSpansOfAnOperationHaveOneTraceIdOnAllRanks) {
  parts_.clocks[0].calendar = kStart + 5 * kMicrosecond;
  for (TracedRank& rank : parts_.ranks) {
    for (std::uint64_t number = 0; number < kSpansMax; ++number)
      rank.operations.push_back({.number = number,
                                 .bytes = 64,
                                 .call = "barrier",
                                 .path = "in-network",
                                 .outcome = "success",
                                 .queued = kStart,
                                 .started = kStart + kMicrosecond,
                                 .ended = kStart + 2 * kMicrosecond});
  }
  parts_.ranks[1].operations.back().ended.reset();
  std::vector<json> documents;
  EXPECT_TRUE(otlp_spans(parts_, [&](const std::string& text) {
                documents.push_back(json::parse(text));
                return Status();
              }).has_value());
  ASSERT_EQ(documents.size(), 2U);
  std::vector<json> last;  // by rank
  for (const json& document : documents) {
    const json& spans = document.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans");
    EXPECT_EQ(spans.size(), kSpansMax);
    EXPECT_NE(spans.at(0).at("traceId"), spans.at(1).at("traceId"));
    last.push_back(spans.back());
  }
  EXPECT_EQ(last[0].at("traceId"), last[1].at("traceId"));
  EXPECT_NE(last[0].at("spanId"), last[1].at("spanId"));
  EXPECT_EQ(last[0].at("startTimeUnixNano"), std::to_string(kStart + 5 * kMicrosecond));
  EXPECT_EQ(last[0].at("attributes").back().at("key"), "tributary.queued_ns");
  EXPECT_EQ(last[1].at("attributes").back().at("key"), "tributary.open");
}

TEST_F(TraceTest, AnErrorOfTheCollectorEndsTheSpans) {
  for (TracedRank& rank : parts_.ranks) rank.operations.assign(kSpansMax, {.call = "barrier", .queued = kStart});
  int documents = 0;
  const Status sent = otlp_spans(parts_, [&](const std::string&) -> Status {
    ++documents;
    return fail(Errc::io, "no");
  });
  EXPECT_FALSE(sent.has_value());
  EXPECT_EQ(documents, 1);
}

TEST_F(TraceTest, NamesRanksThatItDidNotReachWithTheirHosts) {
  parts_.ranks.pop_back();
  parts_.ranks[0].ranks = 4;
  const JobPlaces places{.aggregators = {}, .hosts = {{"node-1", "node-2", "node-2", "node-3"}}};
  EXPECT_THAT(missing_ranks(parts_.ranks, places),
              ElementsAre(HasSubstr("ranks 1-2 on host node-2, rank 3 on host node-3 of group 5c0f: ")));
  const JobPlaces leaders{.aggregators = {}, .hosts = {{"node-1", "node-2"}}};
  EXPECT_THAT(missing_ranks(parts_.ranks, leaders),
              ElementsAre(HasSubstr("ranks 1-3 of group 5c0f (hosts of the job without a traced rank: node-2): ")));
  EXPECT_THAT(missing_ranks(parts_.ranks, {}), ElementsAre(HasSubstr("ranks 1-3 of group 5c0f: ")));
}

TEST(TraceParts, RefusesDocumentsOfAnotherForm) {
  const std::string head =
      R"({"format":1,"clock":"c","steady_ns":5,"calendar_ns":6,"aggregator":"a","host":"h","lanes":[],)";
  TraceParts parts;
  EXPECT_TRUE(add_aggregator(parts, head + R"("workers":[{"segments_lost":0,"segments":[[3,7,9,0,0,5,0,0,0]]}]})"));
  ASSERT_EQ(parts.aggregators.size(), 1U);
  EXPECT_EQ(parts.aggregators[0].segments.at(0).moment, SegmentMoment::came_down);
  for (const char* wrong : {R"("workers":[{"segments_lost":0,"segments":[[4,7,9,0,0,5,0,0,0]]}]})",
                            R"("workers":[{"segments_lost":0,"segments":[[3,7]]}]})",
                            R"("workers":[{"segments_lost":0,"segments":[[3,-7,9,0,0,5,0,0,0]]}]})",
                            R"("workers":[{"segments_lost":0,"segments":[[3,7,9,0,999,5,0,0,0]]}]})",
                            R"("workers":[{"segments_lost":0,"segments":[[3,18446744073709551615,9,0,0,5,0,0,0]]}]})",
                            R"("workers":7})", "}", ""}) {
    EXPECT_FALSE(add_aggregator(parts, head + wrong)) << wrong;
  }
  EXPECT_FALSE(
      add_ranks(parts, R"({"format":2,"clock":"c","steady_ns":5,"calendar_ns":6,"pid":1,"communicators":[]})"));
  EXPECT_EQ(parts.aggregators.size(), 1U);
}

}  // namespace
}  // namespace tributary::cli
