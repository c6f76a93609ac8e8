// The events that the cluster tells, and the log that keeps the last of them.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(EventLog, GivesTheEventsAfterAKnownOne) {
  EventLog log;
  log.begin(1'000);
  const std::uint64_t begin = log.last();
  EXPECT_EQ(begin, 1'000U * 1024) << "ids follow the clock, so a later manager's are higher";
  log.add(1'000, {.text = "a"});
  log.add(1'000, {.text = "b"});
  log.add(5'000, {.text = "c"});
  const auto first = log.after(begin, 2);
  ASSERT_THAT(first.events, SizeIs(2));
  EXPECT_EQ(first.events[0]->text + first.events[1]->text, "ab");
  EXPECT_FALSE(first.missed);
  const auto rest = log.after(first.last, 9);
  ASSERT_THAT(rest.events, SizeIs(1));
  EXPECT_EQ(rest.events[0]->id, 5'000U * 1024);
  EXPECT_EQ(rest.events[0]->time_ms, 5'000);
  EXPECT_THAT(log.after(rest.last, 9).events, IsEmpty());
}

TEST(EventLog, SaysThatAReaderHasMissedEvents) {
  EventLog log;
  log.begin(1'000);
  const std::uint64_t begin = log.last();
  EXPECT_TRUE(log.after(begin - 1, 9).missed) << "an earlier manager gave this id";
  EXPECT_TRUE(log.after(begin + 7, 9).missed) << "a manager whose clock was ahead gave this id";
  for (std::size_t i = 0; i <= EventLog::kEventsMax; ++i) log.add(1'000, {.text = std::to_string(i)});
  const auto page = log.after(begin, 2 * EventLog::kEventsMax);
  EXPECT_TRUE(page.missed);
  EXPECT_THAT(page.events, SizeIs(EventLog::kEventsMax));
  EXPECT_EQ(page.events.front()->text, "1") << "the log has forgotten the oldest event";
  EXPECT_FALSE(log.after(page.events.front()->id - 1, 1).missed);
}

class EventsTest : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    enlist_all();
    known_ = log().last();
  }
  [[nodiscard]] const EventLog& log() const { return settings_.events->log(); }
  /// Returns the kinds of the events since the last call.
  std::vector<std::string> news() {
    const auto page = log().after(known_, EventLog::kEventsMax);
    EXPECT_FALSE(page.missed);
    known_ = page.last;
    std::vector<std::string> kinds;
    for (const auto& event : page.events) kinds.emplace_back(to_string(event->kind));
    last_ = page.events.empty() ? Event{} : *page.events.back();
    return kinds;
  }
  void renew(const std::string& name, std::vector<LateRank> late = {}) {
    ASSERT_TRUE(cluster_->renew_aggregator(name, {}, {.late = std::move(late)}).has_value());
  }
  std::uint64_t known_ = 0;
  Event last_;
};

TEST_F(EventsTest, TellTheLifeOfAGroup) {
  const auto group = ask()->descriptor.group;
  EXPECT_THAT(news(), ElementsAre("group-made"));
  EXPECT_EQ(last_.group, group);
  EXPECT_EQ(last_.job, "job");
  EXPECT_EQ(last_.text, "4 ranks, 1 lane");
  ASSERT_TRUE(cluster_->rebuild_group(group, 1, {"leaf-a"}).has_value());
  EXPECT_THAT(news(), ElementsAre("aggregator-suspected", "tree-lost", "tree-moved"));
  EXPECT_EQ(last_.text, "1 lane, epoch 2");
  ASSERT_TRUE(cluster_->remove_group(group).has_value());
  EXPECT_THAT(news(), ElementsAre("group-ended"));
  (void)ask();
  news();
  advance(16s);
  const auto kinds = news();
  EXPECT_THAT(kinds, testing::Contains("group-ended"));
  EXPECT_THAT(kinds, testing::Contains("aggregator-expired"));
}

TEST_F(EventsTest, TellADenialOnceAndTheReturn) {
  for (const char* name : {"leaf-a", "leaf-b", "spine"}) ASSERT_TRUE(cluster_->set_draining(name, true).has_value());
  EXPECT_THAT(news(), ElementsAre("drained", "drained", "drained"));
  EXPECT_EQ(last_.aggregator, "spine");
  const auto group = ask()->descriptor.group;
  EXPECT_THAT(news(), ElementsAre("group-made", "denied"));
  EXPECT_THAT(last_.text, HasSubstr("got no trees: "));
  EXPECT_FALSE(last_.code.empty());
  ASSERT_TRUE(cluster_->rebuild_group(group, 0, {}).has_value());
  EXPECT_THAT(news(), IsEmpty()) << "the reason is the same";
  ASSERT_TRUE(cluster_->set_draining("spine", false).has_value());
  ASSERT_TRUE(cluster_->rebuild_group(group, 0, {}).has_value());
  EXPECT_THAT(news(), ElementsAre("undrained", "tree-back"));
}

TEST_F(EventsTest, TellALateRankWhenItBecomesLateAndWhenItIsNoLonger) {
  const auto group = ask()->descriptor.group;
  news();
  const LateRank late{.group = group, .rank = 1, .lag = 812ms, .operations_behind = 3, .cause = LateCause::slow_data};
  renew("leaf-a", {late});
  EXPECT_THAT(news(), ElementsAre("straggler"));
  EXPECT_EQ(last_.text, "rank 1 on node-1 is late by 812 ms, 3 operations behind (its data come slowly)");
  EXPECT_EQ(last_.rank, 1U);
  renew("leaf-a", {{.group = group, .rank = 1, .lag = 900ms}});
  EXPECT_THAT(news(), IsEmpty());
  renew("leaf-a");
  EXPECT_THAT(news(), ElementsAre("straggler-over"));
  renew("leaf-a", {{.group = group + 1, .rank = 1, .lag = 9ms}});
  EXPECT_THAT(news(), IsEmpty()) << "there is no such group";
  renew("leaf-a", {late});
  news();
  for (int i = 0; i < 11; ++i) {
    advance(1s);
    ASSERT_TRUE(cluster_->renew_group(group).has_value());
    renew("leaf-b");
    renew("spine");
  }
  EXPECT_THAT(news(), ElementsAre("aggregator-expired", "straggler-over")) << "the word of a dead aggregator is over";
}

TEST_F(EventsTest, TellAnAggregatorsReturnAndItsEnd) {
  const auto group = ask()->descriptor.group;
  ASSERT_TRUE(cluster_->rebuild_group(group, 1, {"leaf-a"}).has_value());
  news();
  advance(1s);
  renew("leaf-a");
  EXPECT_THAT(news(), ElementsAre("aggregator-back"));
  EXPECT_EQ(last_.group, 0U) << "everybody may hear of it";
  ASSERT_TRUE(cluster_->remove_aggregator("leaf-b").has_value());
  ASSERT_TRUE(enlist("leaf-b", "agg-leaf-1").has_value());
  EXPECT_THAT(news(), ElementsAre("aggregator-left", "aggregator-registered"));
}

TEST_F(EventsTest, TellAGroupThatItsJobsRecordBringsBack) {
  const GroupGrant first = *ask();
  const std::uint64_t group = first.descriptor.group;
  const auto second = cluster_->rebuild_group(group, 1, {"leaf-a"});
  ASSERT_TRUE(second.has_value());
  store_ = {};
  open();
  known_ = log().last();
  ASSERT_TRUE(cluster_->adopt_group(group, first.record, nodes(4)).has_value());
  EXPECT_THAT(news(), ElementsAre("group-adopted"));
  EXPECT_EQ(last_.group, group);
  EXPECT_EQ(last_.job, "job");
  EXPECT_EQ(last_.text, "the manager had lost it, and has it again from the job's record: 4 ranks, 1 lane, epoch 1");
  ASSERT_TRUE(cluster_->adopt_group(group, second->record, nodes(4)).has_value());
  EXPECT_THAT(news(), ElementsAre("group-adopted"));
  EXPECT_THAT(last_.text, HasSubstr("had older trees of it, and has it again from the job's record: 4 ranks"));
  EXPECT_THAT(last_.text, HasSubstr("epoch 2"));
  ASSERT_TRUE(cluster_->adopt_group(group, second->record, nodes(4)).has_value());
  EXPECT_THAT(news(), IsEmpty()) << "a second adoption is a renewal";
}

TEST_F(EventsTest, AreForgottenByTheNextManager) {
  const std::uint64_t known = known_;
  clock_.advance(10ms);
  open();
  EXPECT_GT(log().last(), known);
  EXPECT_TRUE(log().after(known, 9).missed) << "the next manager may not know what has happened meanwhile";
}

}  // namespace
}  // namespace tributary::manager
