// `tributary dump` compares the records of ranks: who has not called, who waits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/dump/fr_trace.h"
#include "client/cli/dump/verdict.h"

namespace tributary::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

OperationRecord operation(std::uint64_t number, const std::string& outcome, const std::string& call = "barrier") {
  OperationRecord o{.number = number,
                    .call = call,
                    .collective = "barrier",
                    .dtype = "uint8",
                    .path = "in-network",
                    .outcome = outcome,
                    .queued = 10 * kSecond,
                    .started = 11 * kSecond,
                    .ended = {}};
  if (outcome == "success") o.ended = 12 * kSecond;
  return o;
}

class DumpTest : public testing::Test {
 protected:
  void add(std::uint32_t rank, std::vector<OperationRecord> operations, std::uint64_t called) {
    group_.by_rank[rank] = {.rank = rank,
                            .pid = 100 + rank,
                            .taken = 15 * kSecond,
                            .host = "node-1",
                            .called = called,
                            .failure = {},
                            .operations = std::move(operations)};
  }
  GroupRecord group_{.job = "training", .group = "5c0f", .ranks = 4, .by_rank = {}};
};

TEST_F(DumpTest, NamesTheRankThatHasNotCalledAndTheRanksThatWait) {
  for (const std::uint32_t rank : {0U, 1U, 3U}) add(rank, {operation(16, "success"), operation(17, "open")}, 18);
  add(2, {operation(16, "success")}, 17);
  const Verdict verdict = verdict_on(group_);
  EXPECT_EQ(verdict.operation, 17U);
  EXPECT_EQ(verdict.not_called, (Ranks{2}));
  EXPECT_EQ(verdict.waiting, (Ranks{0, 1, 3}));
  EXPECT_TRUE(verdict.ended.empty());
  EXPECT_TRUE(verdict.no_record.empty());
  EXPECT_DOUBLE_EQ(verdict.wait_seconds, 5);
  EXPECT_EQ(to_text(verdict, group_),
            "job training, group 5c0f: 4 ranks, 4 of them found\n"
            "  operation 17 (barrier) has not ended after 5.0 s\n"
            "  rank 2 has not called it; its last call was operation 16 (barrier), which ended 3.0 s ago\n"
            "  ranks 0-1, 3 wait\n");
}

TEST_F(DumpTest, OnlyLateLeavesOutRanksThatCalled) {
  for (const std::uint32_t rank : {0U, 1U}) add(rank, {operation(17, "open")}, 18);
  add(2, {operation(16, "success")}, 17);
  const Verdict verdict = verdict_on(group_);
  EXPECT_EQ(late_text(verdict, group_),
            "job training, group 5c0f: ranks 0-1 wait\n"
            "  operation 17 (barrier) has not ended after 5.0 s\n"
            "  rank 2 has not called it; its last call was operation 16 (barrier), which ended 3.0 s ago\n"
            "  no record of rank 3: on another host, ended, stopped, or without a status port\n");
  EXPECT_TRUE(verdict.is_late(2));
  EXPECT_FALSE(verdict.is_late(0));
}

TEST_F(DumpTest, OnlyLateSaysNothingOfARankBetweenTwoCalls) {
  add(0, {operation(17, "open")}, 18);
  for (const std::uint32_t rank : {1U, 2U, 3U}) add(rank, {operation(16, "success")}, 17);
  group_.by_rank[0].operations[0].queued = 15 * kSecond - kSecond / 100;
  EXPECT_EQ(late_text(verdict_on(group_), group_), "");
  group_.by_rank[0].operations[0].queued = 15 * kSecond - kSecond / 5;
  EXPECT_NE(late_text(verdict_on(group_), group_), "");
}

TEST_F(DumpTest, OnlyLateSaysNothingOfAGroupInWhichAllHaveCalled) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) add(rank, {operation(17, "open")}, 18);
  EXPECT_EQ(late_text(verdict_on(group_), group_), "");
  group_.by_rank.clear();
  add(0, {operation(17, "success")}, 18);
  EXPECT_EQ(late_text(verdict_on(group_), group_), "");
}

TEST_F(DumpTest, TheFirstOperationThatHasNotEndedCounts) {
  add(0, {operation(4, "success"), operation(5, "success"), operation(6, "open")}, 7);
  add(1, {operation(4, "success"), operation(5, "open")}, 6);
  const Verdict verdict = verdict_on(group_);
  EXPECT_EQ(verdict.operation, 5U);
  EXPECT_EQ(verdict.waiting, (Ranks{1}));
  EXPECT_EQ(verdict.ended, (Ranks{0}));
  EXPECT_EQ(verdict.no_record, (Ranks{2, 3}));
}

TEST_F(DumpTest, ARankOfWhichTheRingHasPassedTheOperationHasEndedIt) {
  add(0, {operation(300, "success"), operation(301, "success")}, 302);
  add(1, {operation(5, "open"), operation(6, "success")}, 7);
  EXPECT_EQ(verdict_on(group_).ended, (Ranks{0}));
}

TEST_F(DumpTest, NamesRanksThatCalledAnotherOperation) {
  add(0, {operation(0, "open", "all_reduce of 4 float32 (sum)")}, 1);
  add(1, {operation(0, "open", "all_reduce of 5 float32 (sum)")}, 1);
  EXPECT_EQ(verdict_on(group_).calls_otherwise, (Ranks{1}));
}

TEST_F(DumpTest, AFailedOperationHasNotEnded) {
  add(0, {operation(0, "failure")}, 1);
  group_.by_rank[0].failure = "rank 1 is gone";
  const Verdict verdict = verdict_on(group_);
  EXPECT_EQ(verdict.operation, 0U);
  EXPECT_NE(to_text(verdict, group_).find("rank 0 has failed: rank 1 is gone\n"), std::string::npos);
}

TEST_F(DumpTest, SaysThatNothingIsOpen) {
  add(0, {operation(0, "success")}, 1);
  add(1, {}, 0);
  const Verdict verdict = verdict_on(group_);
  EXPECT_EQ(verdict.operation, std::nullopt);
  EXPECT_NE(to_text(verdict, group_).find("every operation that was called has ended"), std::string::npos);
}

TEST_F(DumpTest, RefusesDocumentsOfAnotherForm) {
  GroupRecords groups;
  for (const char* document : {"", "[]", "{}", R"({"format": 2, "pid": 1, "time_ns": 0, "communicators": []})",
                               R"({"format": 1, "pid": "x", "time_ns": 0, "communicators": []})",
                               R"({"format": 1, "pid": 1, "time_ns": 0, "communicators": [{"job": "a"}]})"}) {
    EXPECT_FALSE(add_document(groups, document)) << document;
  }
  EXPECT_TRUE(groups.empty());
  EXPECT_TRUE(add_document(groups, R"({"format": 1, "pid": 1, "time_ns": 0, "communicators": []})"));
}

TEST_F(DumpTest, ReadsTheTimesOfTheFirstAndTheLastByteIfTheLibraryWritesThem) {
  const std::string before = R"({"format": 1, "pid": 1, "time_ns": 0, "communicators": [{"job": "a", "group": "g",
      "host": "h", "rank": 0, "ranks": 1, "called": 1, "failure": "", "operations": [{"number": 0, "call": "barrier",
      "collective": "barrier", "dtype": "uint8", "count": 0, "bytes": 0, "path": "in-network", "outcome": "open",
      "queued_ns": 1, "started_ns": 2, )";
  const auto read = [&before](const std::string& middle) {
    GroupRecords groups;
    EXPECT_TRUE(add_document(groups, before + middle + R"("ended_ns": null}]}]})"));
    return groups.begin()->second.by_rank[0];
  };
  EXPECT_EQ(read("").operations[0].first_byte, std::nullopt);
  const RankRecord record = read(R"("first_byte_ns": 3, "last_byte_ns": 4, )");
  EXPECT_EQ(record.operations[0].first_byte, 3);
  EXPECT_EQ(record.operations[0].last_byte, 4);
  EXPECT_EQ(to_json(record)["operations"][0]["last_byte_ns"], 4);
}

TEST_F(DumpTest, TheRecordsOfARankMakeTheDocumentForTheAnalyzer) {
  add(0, {operation(0, "success"), operation(1, "open")}, 2);
  const auto document = fr_document(group_, group_.by_rank[0]);
  EXPECT_EQ(document["entries"][0]["state"], "completed");
  EXPECT_EQ(document["entries"][1]["state"], "started");
  EXPECT_EQ(document["entries"][1]["profiling_name"], "nccl:all_reduce_barrier");
  EXPECT_EQ(document["pg_config"]["0"]["ranks"], "[0, 1, 2, 3]");
  EXPECT_EQ(document["pg_status"]["0"]["last_completed_collective"], 0);
}

TEST(Pickle, WritesProtocol0) {
  EXPECT_EQ(to_pickle({{"a", {1, nullptr, true, "x\n\\\xC3\xA9"}}}), "(dVa\n(lI1\naNaI01\naVx\\u000a\\u005c??\nas.");
}

TEST(RanksText, JoinsNeighbours) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
}

}  // namespace
}  // namespace tributary::cli
