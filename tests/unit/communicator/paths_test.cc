// Shared memory and hosts: a rank that takes no part in them although rank 0 says that all ranks do; and the texts
// about paths.
#include "client/communicator/host_path.h"
#include "client/communicator/local_path.h"
#include "client/communicator/path_report.h"
#include "client/communicator/quicker_calls.h"
#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

class LocalPathTest : public PartTest {
 protected:
  LocalPath path_{shared_, [] {}, [](const std::string&, bool) {}};
};

TEST_F(LocalPathTest, WithoutAGroupItAcceptsAnyOtherPath) {
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = 0}));
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = kCommitHosts}));
  EXPECT_TRUE(whole_.errors.empty());
}

TEST_F(LocalPathTest, WithoutAGroupItCannotUseSharedMemory) {
  EXPECT_FALSE(path_.agree({.type = FrameType::commit, .value = kCommitLocal}));
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_EQ(
      whole_.errors[0].message,
      "rank 1 has no part in the memory that the ranks of host node-1 share: rank 0 did not ask it to share memory; "
      "set TRIBUTARY_LOCAL=off to work without shared memory");
  ASSERT_EQ(whole_.to_rank_0.size(), 1U);
  EXPECT_EQ(whole_.to_rank_0[0].body, whole_.errors[0].message);
}

TEST_F(LocalPathTest, OpensNoPlaceForRanksOfSeveralHosts) {
  EXPECT_FALSE(path_.open({"a", "a", "b", "a"}, {"n", "n", "n", "n"}));
  EXPECT_FALSE(path_.open({"", "", "", ""}, {"n", "n", "n", "n"}));
  EXPECT_FALSE(path_.open({"a", "a", "a", "a"}, {"n", "m", "n", "n"}));
  EXPECT_FALSE(path_.open({"a", "a", "a", "a"}, {"n", "n", "n", "n"})) << "the settings forbid shared memory";
}

class HostPathTest : public PartTest {
 protected:
  Directory directory_{1, 4};
  HostPath path_{
      shared_,
      {.service = nullptr, .directory = directory_, .done = {}, .met = {}, .path_changed = {}, .second_way = {}}};
};

TEST_F(HostPathTest, WithoutALevelItAcceptsAnyOtherPath) {
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = 0}));
  EXPECT_FALSE(path_.meeting() || path_.gave_up_in_time());
}

TEST_F(HostPathTest, WithoutALevelItCannotReduceOnTheHost) {
  EXPECT_FALSE(path_.agree({.type = FrameType::commit, .value = kCommitHosts}));
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_NE(whole_.errors[0].message.find("rank 1 has no part in what the ranks of host node-1 do together"),
            std::string::npos);
}

TEST_F(HostPathTest, AFailureCountsOnlyWhileThereIsALevel) {
  EXPECT_FALSE(path_.on_failure_told(2, {.type = FrameType::joined, .body = encode(LaneFailure{"", "why"})}));
}

TEST(PathLine, NamesThePathInUseAndTheReason) {
  CommunicatorInfo info;
  describe_trees(nullptr, "no aggregator is free", info);
  EXPECT_EQ(path_line(info, nullptr, "node-1"), "in-network reduction not in use: no aggregator is free");
  describe_trees(nullptr, "", info);
  EXPECT_EQ(info.reason, "no aggregator is free") << "the reason is not new";
  Trees trees;
  trees.descriptor.epoch = 3;
  trees.terms.first_operation = 17;
  trees.descriptor.lanes.resize(2);
  trees.descriptor.lanes[0] = {.window = 8, .segment_bytes = 4096, .levels = 2, .entries = {}};
  describe_trees(&trees, "", info);
  EXPECT_TRUE(info.in_network);
  EXPECT_EQ(path_line(info, &trees, "node-1"),
            "trees are ready: epoch 3, 2 lane(s), tree depth 2, window 8 x 4096 bytes, from operation 17");
  info.local = true;
  EXPECT_EQ(path_line(info, &trees, "node-1"),
            "collectives in shared memory of host node-1, in-network reduction not needed: trees are ready");
}

class PathLog : public PartTest {
 protected:
  PathLog() : PartTest(0, 4) {}
  void lack(const std::string& why, PathEvent event = PathEvent::news) { tell_lack(shared_, why, event); }
};

TEST_F(PathLog, WarnsOnceThatThereIsNoTree) {
  lack("no manager");
  lack("no aggregator");
  EXPECT_EQ(whole_.lines, (std::vector<std::string>{"unwanted: tributary: rank 0 of 4: no manager",
                                                    "tributary: rank 0 of 4: no aggregator"}));
  EXPECT_TRUE(shared_.info.lacks_tree);
}

TEST_F(PathLog, DoesNotWarnWhileAnAnswerIsDue) {
  shared_.looks_for_trees = true;
  lack("the manager has not answered yet");
  EXPECT_EQ(whole_.lines.back(), "tributary: rank 0 of 4: the manager has not answered yet");
  EXPECT_FALSE(shared_.info.lacks_tree);
  shared_.looks_for_trees = false;
  lack("it has none");
  EXPECT_EQ(whole_.lines.back(), "unwanted: tributary: rank 0 of 4: it has none");
}

TEST_F(PathLog, WarnsOfEachLostTreeButNotOfAMove) {
  lack("aggregator a", PathEvent::lost);
  lack("aggregator b", PathEvent::lost);
  lack("better trees", PathEvent::moves);
  EXPECT_EQ(whole_.lines, (std::vector<std::string>{"unwanted: tributary: rank 0 of 4: aggregator a",
                                                    "unwanted: tributary: rank 0 of 4: aggregator b",
                                                    "tributary: rank 0 of 4: better trees"}));
  EXPECT_FALSE(shared_.info.lacks_tree) << "rank 0 asks for new ones";
}

TEST_F(PathLog, DoesNotWarnWhereTheRanksNeedNoTree) {
  shared_.info.local = true;
  lack("all ranks are on one host");
  EXPECT_EQ(whole_.lines.back(), "tributary: rank 0 of 4: all ranks are on one host");
}

TEST_F(PathLog, SaysOnceThatBytesGoByTheTrees) {
  shared_.info.epoch = 2;
  tell_use(shared_);
  tell_use(shared_);
  EXPECT_EQ(whole_.lines, (std::vector<std::string>{
                              "tributary: rank 0 of 4: in-network reduction in use: epoch 2, 0 lane(s), tree depth 0, "
                              "window 0 x 0 bytes"}));
  EXPECT_EQ(shared_.info.reason, "in use");
}

TEST_F(PathLog, ReasonsAreCountedInTheRecordByTheirCodes) {
  CommunicatorSettings settings = settings_of(0, 4);
  const auto record = settings.flight_record = std::make_shared<FlightRecord>(FlightOrigin{});
  const Shared shared{.transport = network_.transport("counts"), .settings = std::move(settings), .whole = whole_};
  count_reason(shared, "aggregator a is gone [aggregator-lost]");
  count_reason(shared, "aggregator b is gone [aggregator-lost]");
  count_reason(shared, "a sentence without a code");
  count_reason(shared, "");
  EXPECT_EQ(record->numbers().reasons.of(Reason::aggregator_lost), 2U);
  EXPECT_EQ(record->numbers().reasons.of(Reason::none), 0U);
}

TEST(Requirement, IsBrokenOnlyByRanksThatWouldFallBack) {
  CommunicatorSettings settings;
  settings.nranks = 4;
  CommunicatorInfo info;
  info.reason = "no aggregator is free";
  EXPECT_EQ(unmet_requirement(settings, info), "") << "nothing is required";
  settings.require_trees = true;
  EXPECT_EQ(unmet_requirement(settings, info),
            "TRIBUTARY_REQUIRE=in-network, and there is no tree: no aggregator is free");
  info.in_network = true;
  EXPECT_EQ(unmet_requirement(settings, info), "");
  info = {.local = true};
  EXPECT_EQ(unmet_requirement(settings, info), "") << "the ranks share one host's memory";
  settings.nranks = 1;
  EXPECT_EQ(unmet_requirement(settings, {}), "") << "a lone rank needs no tree";
}

TEST(EndLine, ShowsBytesByPath) {
  CommunicatorSettings settings;
  settings.nranks = 4;
  CommunicatorInfo info;
  info.operations = 12;
  info.bytes_in_network = 300;
  info.bytes_fallback = 100;
  EXPECT_EQ(end_line(settings, info),
            "ends after 12 operations: bytes in-network 300 (75.0 %), between ranks 100, in shared memory 0");
  info.failovers = 2;
  info.returns = 1;
  EXPECT_EQ(end_line(settings, info),
            "ends after 12 operations: bytes in-network 300 (75.0 %), between ranks 100, in shared memory 0; "
            "trees lost: 2, returns: 1");
  info = {.in_network = true, .operations = 3, .bytes_fallback = 8};
  EXPECT_EQ(end_line(settings, info),
            "ends after 3 operations: bytes in-network 0 (0.0 %), between ranks 8, in shared memory 0; trees were "
            "ready, and the tuning let no operation take them (tributary explain says why) [trees-not-chosen]");
}

TEST(EndLine, SaysWhatWouldHaveBeenQuicker) {
  CommunicatorSettings settings;
  settings.nranks = 8;
  settings.flight_record = std::make_shared<FlightRecord>(FlightOrigin{.nranks = 8});
  const Signature call{.dtype = DType::float32, .count = 4U << 20};
  const transport::TimePoint start{std::chrono::seconds(1)};
  for (std::uint64_t number = 0; number < 3; ++number) {
    settings.flight_record->began(number, call, FlightPath::between_ranks, {start, start});
    settings.flight_record->ended(number, FlightPath::between_ranks, FlightOutcome::success,
                                  start + std::chrono::milliseconds(100 * (number + 1)));
  }
  CommunicatorInfo info{.operations = 3, .bytes_fallback = 48U << 20};
  EXPECT_EQ(end_line(settings, info).find("quicker"), std::string::npos) << "only rank 0 has figures";
  info.figures.emplace();
  const auto quicker = quicker_calls(settings.flight_record->snapshot(), settings, info);
  ASSERT_EQ(quicker.size(), 1U);
  EXPECT_EQ(quicker[0].calls, 3U);
  EXPECT_DOUBLE_EQ(quicker[0].took_s, 0.2);
  EXPECT_LT(quicker[0].would_take_s, 0.13);
  EXPECT_TRUE(end_line(settings, info).ends_with("; by the model, " + to_string(quicker[0])))
      << end_line(settings, info);
  EXPECT_TRUE(
      to_string(quicker[0])
          .starts_with(
              "over aggregators with the link rate of the ranks, all_reduce of 4194304 float32 (sum) would take 1"));
  EXPECT_TRUE(to_string(quicker[0]).ends_with(" ms, not 200 ms"));
}

}  // namespace
}  // namespace tributary::client
