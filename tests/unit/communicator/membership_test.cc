// The control star between rank 0 and the other ranks, with real proofs over a network of virtual time.
#include "client/communicator/membership.h"

#include <nlohmann/json.hpp>

#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

/// The membership of one rank, without its other parts: it goes through the meeting, and records the events.
class LoneMember final : public MembershipUser, public Whole {
 public:
  LoneMember(transport::SimNetwork& network, std::uint32_t rank, std::uint32_t nranks, Secret secret)
      : host_("rank-" + std::to_string(rank)),
        shared_{.transport = network.transport(host_),
                .settings = settings_of(rank, nranks, secret),
                .whole = static_cast<Whole&>(*this)} {
    if (rank == 0) root_ = std::move(*shared_.transport.listen({"rank-0", 7471}, membership_));
    network.on_due(host_, [this, &network] {
      shared_.transport.poll(transport::Duration::zero());
      look_at_clock();
      membership_.tick();
      network.wake_at(host_, network.now() + 20ms);
    });
    network.wake_at(host_, network.now() + 1us);
  }
  void start() {
    look_at_clock();
    EXPECT_TRUE(membership_.start());
  }

  void all_have_come() override { ++came; }
  void on_word_of_rank_0(const ControlMessage& message) override { heard.push_back(message); }
  void on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) override {
    reports.emplace_back(from, message);
  }
  void on_rank_gone(std::uint32_t, const std::string&) override { ++gone; }
  void tell_rank_0(ControlMessage message) override { membership_.tell_rank_0(std::move(message)); }
  void tell(std::uint32_t rank, const ControlMessage& message) override { membership_.tell(rank, message); }
  void begin_failing(Error error) override { errors.push_back(std::move(error)); }
  void abort(const std::string&) override {}
  void path_changed(const std::string&, bool) override {}
  void look_at_clock() override { (void)shared_.clock.look(shared_.transport.now()); }

  int came = 0, gone = 0;
  std::vector<ControlMessage> heard;
  std::vector<std::pair<std::uint32_t, ControlMessage>> reports;
  std::vector<Error> errors;

 private:
  static CommunicatorSettings settings_of(std::uint32_t rank, std::uint32_t nranks, Secret secret) {
    CommunicatorSettings settings;
    settings.rank = rank;
    settings.nranks = nranks;
    settings.id = {{"rank-0", 7471}, secret};
    settings.listen = {"rank-" + std::to_string(rank), 0};
    settings.host_id = settings.advertised_host = "rank-" + std::to_string(rank);
    settings.rail = "rail-1";
    settings.link_rate = rank * std::uint64_t{10'000'000'000};  // rank 0 does not know its link's rate
    return settings;
  }
  const std::string host_;

 public:
  Shared shared_;
  SecondWayUse second_way_{shared_};
  Membership membership_{shared_, static_cast<MembershipUser&>(*this), second_way_};

 private:
  std::unique_ptr<transport::Listener> root_;
};

class MembershipTest : public testing::Test {
 protected:
  LoneMember& add(std::uint32_t rank, std::uint32_t nranks = 3, Secret secret = {}) {
    return *ranks_.emplace_back(std::make_unique<LoneMember>(network_, rank, nranks, secret));
  }
  transport::SimNetwork network_;
  std::vector<std::unique_ptr<LoneMember>> ranks_;
};

TEST_F(MembershipTest, AllComeAndTalkToRankZero) {
  LoneMember& root = add(0);
  root.start();
  LoneMember& one = add(1);
  one.start();
  network_.run_for(100ms);
  EXPECT_EQ(root.came, 0);
  EXPECT_EQ(root.membership_.missing(), "these ranks did not come: rank 2");
  add(2).start();
  network_.run_for(100ms);
  EXPECT_EQ(root.came, 1);
  EXPECT_EQ(root.membership_.directory().host_ids(), (std::vector<std::string>{"rank-0", "rank-1", "rank-2"}));
  EXPECT_EQ(root.membership_.directory().common_rail(), "rail-1");
  EXPECT_EQ(root.membership_.directory().slowest_link(), 10'000'000'000U) << "rank 1 has the slowest link";
  root.membership_.tell_all({.type = FrameType::welcome, .body = "hello"});
  network_.run_for(100ms);
  for (const auto& rank : ranks_) {
    ASSERT_EQ(rank->heard.size(), 1U);
    EXPECT_EQ(rank->heard[0].body, "hello");
  }
  one.tell_rank_0({.type = FrameType::joined, .body = "here"});
  root.tell_rank_0({.type = FrameType::joined, .body = "here, too"});
  network_.run_for(100ms);
  ASSERT_EQ(root.reports.size(), 2U);
  EXPECT_EQ(root.reports[0].first, 0U);
  EXPECT_EQ(root.reports[1].first, 1U);
}

TEST_F(MembershipTest, ARankOfAnotherSizeOrTheSameNumberIsRefused) {
  add(0).start();
  add(1).start();
  LoneMember& other = add(2, 5);
  other.start();
  network_.run_for(100ms);
  EXPECT_EQ(ranks_[0]->came, 0);
  EXPECT_EQ(ranks_[0]->membership_.missing(), "these ranks did not come: rank 2");
  EXPECT_GE(ranks_[0]->membership_.strangers_turned_away(), 1U);
}

TEST_F(MembershipTest, ARankWithAnotherSecretBelievesNobody) {
  add(0).start();
  Secret secret{};
  secret[0] = std::byte{7};
  LoneMember& other = add(1, 3, secret);
  other.start();
  network_.run_for(200ms);
  ASSERT_FALSE(other.errors.empty());
  EXPECT_EQ(other.errors[0].code, Errc::denied);
  EXPECT_NE(other.errors[0].message.find("has not proved to be rank 0"), std::string::npos);
}

TEST_F(MembershipTest, MessagesBeforeTheWelcomeAreRefused) {
  LoneMember& root = add(0, 2);
  root.start();
  LoneMember& one = add(1, 2);
  one.start();
  network_.run_for(100ms);
  ASSERT_EQ(root.came, 1);
  root.membership_.tell(1, {.type = FrameType::commit});
  network_.run_for(100ms);
  EXPECT_TRUE(one.heard.empty());
  ASSERT_EQ(one.errors.size(), 1U);
  EXPECT_NE(one.errors[0].message.find("before its welcome"), std::string::npos);
}

TEST_F(MembershipTest, ARankThatGoesBeforeAllHaveMetMayComeAgain) {
  LoneMember& root = add(0);
  root.start();
  add(1).start();
  network_.run_for(100ms);
  network_.cut("rank-0", "rank-1");
  network_.run_for(20ms);
  EXPECT_EQ(root.membership_.missing(), "these ranks did not come: rank 1, rank 2");
  network_.run_for(500ms);
  EXPECT_EQ(root.membership_.missing(), "these ranks did not come: rank 2");
  add(2).start();
  network_.run_for(100ms);
  EXPECT_EQ(root.came, 1);
  EXPECT_TRUE(root.membership_.all_can_amend());
}

}  // namespace
}  // namespace tributary::client
