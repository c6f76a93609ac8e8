// Several managers and one store on virtual time. A seed decides on pauses, cuts and lost answers.
#include "tree-manager/service/leadership.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kLease{5000};

class VirtualClock final : public Clock {
 public:
  TimePoint time{1h};
  [[nodiscard]] TimePoint now() const override { return time; }
  [[nodiscard]] std::int64_t unix_milliseconds() const override { return 0; }
};

/// The store's side: leases, and the leader's key.
class Etcd {
 public:
  explicit Etcd(const VirtualClock& clock) : clock_(clock) {}

  LeaseId make_lease(milliseconds life) {
    leases_[++last_] = {clock_.time + life, life};
    return last_;
  }
  std::optional<Term> stand(LeaseId lease, const std::string& who) {
    expire();
    if (!leader_ && leases_.contains(lease)) leader_ = Term{lease, ++revision_, 1, 1000, who};
    return leader_ && leader_->lease == lease ? leader_ : std::nullopt;
  }
  bool renew(LeaseId lease) {
    expire();
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return false;
    found->second.end = clock_.time + found->second.life;
    return true;
  }
  void revoke(LeaseId lease) {
    leases_.erase(lease);
    expire();
  }
  std::optional<LeaderSeen> look() {
    expire();
    if (!leader_) return std::nullopt;
    return LeaderSeen{leader_->candidate, leader_->revision};
  }
  /// Makes a write of this leadership, or refuses it.
  bool write(const Term& term) {
    expire();
    if (!leader_ || leader_->revision != term.revision) return false;
    EXPECT_GE(term.fence(), last_fence) << "a write with a lower fence than one before";
    last_fence = term.fence();
    ++writes;
    return true;
  }

  std::uint64_t last_fence = 0;
  std::uint64_t writes = 0;

 private:
  struct Lease {
    Clock::TimePoint end;
    milliseconds life;
  };
  void expire() {
    std::erase_if(leases_, [&](const auto& it) { return it.second.end <= clock_.time; });
    if (leader_ && !leases_.contains(leader_->lease)) leader_.reset();
  }
  const VirtualClock& clock_;
  std::map<LeaseId, Lease> leases_;
  std::optional<Term> leader_;
  LeaseId last_ = 0;
  std::uint64_t revision_ = 0;
};

class World;

/// One manager. The world may delay, cut or lose its calls, at random.
class Manager final : public Election, public LeadershipUser {
 public:
  Manager(World& world, std::string name);

  Result<LeaseId> make_lease(milliseconds life) override;
  Result<std::optional<Term>> stand(LeaseId lease) override;
  Result<bool> renew(LeaseId lease) override;
  void resign(LeaseId lease) override;
  Result<std::optional<LeaderSeen>> look() override;
  void lead(const Term& begun) override {
    term = begun;
    refused = false;
  }
  void follow(const std::optional<LeaderSeen>& seen) override {
    term.reset();
    leader = seen;
  }
  [[nodiscard]] bool failed() const override { return refused; }
  /// Writes as a leader that does not know that it no longer leads.
  void write();

  const std::string name;
  std::optional<Term> term;
  std::optional<LeaderSeen> leader;
  bool refused = false;
  bool cut = false;      // cut off from the store
  bool in_call = false;  // true also while it is paused
  Clock::TimePoint next{};
  Leadership leadership;

 private:
  template <class Call>
  auto call(const Call& does) -> Result<decltype(does())>;
  World& world_;
};

class World {
 public:
  World(std::uint64_t seed, int managers) : random(seed), etcd(clock) {
    for (int i = 0; i < managers; ++i) all.push_back(std::make_unique<Manager>(*this, "m" + std::to_string(i)));
  }

  /// Runs the managers that are not in a call until `until`, in the order of their turns.
  void run_until(Clock::TimePoint until) {
    while (true) {
      Manager* first = nullptr;
      for (const auto& it : all) {
        if (!it->in_call && (first == nullptr || it->next < first->next)) first = it.get();
      }
      if (first == nullptr || first->next > until) break;
      clock.time = std::max(clock.time, first->next);
      turn(*first);
    }
    clock.time = std::max(clock.time, until);
  }
  void run_for(milliseconds time) { run_until(clock.time + time); }

  void turn(Manager& manager) {
    manager.in_call = true;
    manager.next = std::max(manager.leadership.turn(), clock.time + 1ms);
    manager.in_call = false;
    check();
    manager.write();
  }
  /// Stops one manager at this point, and lets the other managers go on.
  void pause(Manager& manager, milliseconds time) {
    const bool before = std::exchange(manager.in_call, true);
    run_for(time);
    manager.in_call = before;
  }
  void check() const {
    EXPECT_LE(std::ranges::count_if(all, [](const auto& it) { return !it->in_call && it->leadership.leads(); }), 1)
        << "two managers that do not stand still believe that they lead";
  }
  [[nodiscard]] Manager* leader() const {
    for (const auto& it : all) {
      if (it->leadership.leads() && it->term) return it.get();
    }
    return nullptr;
  }
  [[nodiscard]] bool percent(unsigned of_hundred) { return random() % 100 < of_hundred; }

  VirtualClock clock;
  std::mt19937_64 random;
  Etcd etcd;
  std::vector<std::unique_ptr<Manager>> all;
  unsigned troubles = 0;  // percentage of the calls that fail in some way
};

Manager::Manager(World& world, std::string called)
    : name(std::move(called)), leadership(*this, *this, world.clock, {.lease = kLease}), world_(world) {}

template <class Call>
auto Manager::call(const Call& does) -> Result<decltype(does())> {
  const auto lost = [&] { return fail(Errc::unreachable, "the test lost the call of " + name); };
  const auto hold_up = [&] {
    if (world_.percent(world_.troubles)) world_.pause(*this, milliseconds(world_.random() % 12'000));
  };
  hold_up();
  if (cut || world_.percent(world_.troubles)) return lost();
  auto answer = does();
  hold_up();
  if (cut || world_.percent(world_.troubles)) return lost();
  return answer;
}

Result<LeaseId> Manager::make_lease(milliseconds life) {
  return call([&] { return world_.etcd.make_lease(life); });
}
Result<std::optional<Term>> Manager::stand(LeaseId lease) {
  return call([&] { return world_.etcd.stand(lease, name); });
}
Result<bool> Manager::renew(LeaseId lease) {
  return call([&] { return world_.etcd.renew(lease); });
}
void Manager::resign(LeaseId lease) {
  static_cast<void>(call([&] {
    world_.etcd.revoke(lease);
    return true;
  }));
}
Result<std::optional<LeaderSeen>> Manager::look() {
  return call([&] { return world_.etcd.look(); });
}
void Manager::write() {
  if (term && !cut && !world_.etcd.write(*term)) refused = true;
}

TEST(Leadership, OneOfThreeLeadsAndTheOthersKnowIt) {
  World world(1, 3);
  world.run_for(2s);
  const Manager* leader = world.leader();
  ASSERT_NE(leader, nullptr);
  world.run_for(60s);
  EXPECT_EQ(world.leader(), leader) << "without need, the leader stays";
  for (const auto& it : world.all) {
    if (it.get() != leader) {
      ASSERT_TRUE(it->leader.has_value());
      EXPECT_EQ(it->leader->url, leader->name);
    }
  }
}

TEST(Leadership, AnotherLeadsWithinTheLeaseAndTwoSecondsAfterADeath) {
  World world(2, 3);
  world.run_for(2s);
  Manager* dead = world.leader();
  dead->in_call = true;  // never comes back
  world.run_for(kLease + 2s);
  const auto living = std::ranges::count_if(
      world.all, [&](const auto& it) { return it.get() != dead && it->leadership.leads() && it->term; });
  EXPECT_EQ(living, 1);
}

TEST(Leadership, AnotherLeadsAtOnceAfterAnOrderlyEnd) {
  World world(3, 2);
  world.run_for(2s);
  Manager* gone = world.leader();
  gone->leadership.resign();
  gone->in_call = true;
  world.run_for(1s);
  ASSERT_NE(world.leader(), nullptr);
  EXPECT_NE(world.leader(), gone);
}

TEST(Leadership, ALeaderThatStoodStillKnowsAtOnceThatItNoLongerLeads) {
  World world(4, 3);
  world.run_for(2s);
  Manager* old = world.leader();
  const Term term = *old->term;
  world.pause(*old, 30s);
  EXPECT_FALSE(old->leadership.leads()) << "before its next turn";
  EXPECT_FALSE(world.etcd.write(term));
  EXPECT_GT(world.etcd.last_fence, term.fence());
  world.run_for(1s);
  EXPECT_FALSE(old->term.has_value());
  EXPECT_EQ(old->leader->url, world.leader()->name);
}

TEST(Leadership, ALeaderThatIsCutFromTheStoreGivesUpBeforeAnotherLeads) {
  World world(5, 3);
  world.run_for(2s);
  Manager* old = world.leader();
  old->cut = true;
  world.run_for(kLease + 2s);
  EXPECT_FALSE(old->term.has_value());
  EXPECT_FALSE(old->leader.has_value()) << "it cannot know who leads";
  ASSERT_NE(world.leader(), nullptr);
  old->cut = false;
  world.run_for(2s);
  EXPECT_EQ(old->leader->url, world.leader()->name);
}

TEST(Leadership, ALeaderWhoseStoreRefusesItGivesUpAndLetsOthersTry) {
  World world(6, 2);
  world.run_for(2s);
  Manager* failed = world.leader();
  failed->refused = true;
  world.run_for(2s);
  ASSERT_NE(world.leader(), nullptr);
  EXPECT_NE(world.leader(), failed);
}

TEST(Leadership, AWinnerThatDoesNotHearOfItLeadsWithTheSameLease) {
  World world(7, 1);
  Manager& only = *world.all.front();
  world.etcd.stand(world.etcd.make_lease(1s), "gone");
  world.run_for(5s);
  EXPECT_EQ(world.leader(), &only);
}

/// With pauses, cuts and lost answers at random, fences of accepted writes never fall, and no two running managers
/// believe that they lead. Soon after the last trouble one manager leads.
TEST(Leadership, HoldsUnderPausesCutsAndLostAnswers) {
  std::uint64_t writes = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 1 + static_cast<int>(seed % 5));
    world.troubles = static_cast<unsigned>(seed % 7);
    for (int step = 0; step < 60; ++step) {
      Manager& one = *world.all[world.random() % world.all.size()];
      if (world.percent(20)) one.cut = !one.cut;
      if (world.percent(15)) world.pause(one, milliseconds(world.random() % 40'000));
      world.run_for(milliseconds(world.random() % 4000));
    }
    world.troubles = 0;
    for (const auto& it : world.all) it->cut = false;
    world.run_for(2 * kLease + 2s);
    ASSERT_NE(world.leader(), nullptr) << "none leads";
    writes += world.etcd.writes;
    if (HasFailure()) return;
  }
  EXPECT_GT(writes, 10'000U);
}

}  // namespace
}  // namespace tributary::manager
