#include <gmock/gmock.h>

#include <random>
#include <set>

#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using ClusterTest = ClusterFixture;

TEST_F(ClusterTest, GivesEveryRankAChainOfTokensToTheRoot) {
  open();
  enlist_all();
  const auto grant = ask(2);
  ASSERT_TRUE(grant.has_value()) << grant.error().message;
  const GroupDescriptor& d = grant->descriptor;
  EXPECT_EQ(d.epoch, 1U);
  EXPECT_EQ(d.expires_at, clock_.unix_seconds() + 120);
  ASSERT_THAT(d.lanes, SizeIs(2)) << d.reason;
  const auto verifier = TokenVerifier::create(cluster_->signing().now()->signing.public_key());
  for (std::size_t lane = 0; lane < d.lanes.size(); ++lane) {
    // Collect the facts that each aggregator would learn: it must hear of every child once, and all children must tell
    // it the same facts about itself.
    std::map<std::string, std::set<std::uint16_t>> children;
    std::map<std::string, TokenClaims> shape;
    ASSERT_THAT(d.lanes[lane].entries, SizeIs(4));
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const LaneEntry& entry = d.lanes[lane].entries[rank];
      ASSERT_THAT(entry.tokens, SizeIs(2)) << "one token is for the leaf, and one for the root";
      for (std::size_t level = 0; level < entry.tokens.size(); ++level) {
        const auto claims = verifier->verify(entry.tokens[level], clock_.unix_seconds());
        ASSERT_TRUE(claims.has_value()) << claims.error().message;
        EXPECT_EQ(claims->job, "job");
        EXPECT_EQ(claims->group, d.group);
        EXPECT_EQ(claims->epoch, 1U);
        EXPECT_EQ(claims->lane, lane);
        EXPECT_EQ(claims->ranks, 4U);
        EXPECT_EQ(claims->window, d.lanes[lane].window);
        EXPECT_EQ(claims->segment_bytes, d.lanes[lane].segment_bytes);
        EXPECT_EQ(claims->kind, level == 0 ? ChildKind::rank : ChildKind::aggregator);
        EXPECT_EQ(claims->rank, level == 0 ? rank : rank / 2 * 2) << "the claims name the lowest rank below";
        EXPECT_EQ(claims->root, level == 1);
        if (level == 0) {
          EXPECT_EQ(claims->aggregator, entry.aggregator_name);
        }
        EXPECT_LT(claims->child, claims->children);
        children[claims->aggregator].insert(claims->child);
        const auto [known, fresh] = shape.emplace(claims->aggregator, *claims);
        EXPECT_TRUE(fresh ||
                    (known->second.children == claims->children && known->second.parent_port == claims->parent_port));
        // The address at which a leaf looks for its parent must be the address of the aggregator that the next token
        // names.
        if (level == 0) {
          const auto next = verifier->verify(entry.tokens[1], clock_.unix_seconds());
          const auto parent = cluster_->aggregator(next->aggregator);
          EXPECT_EQ((Endpoint{claims->parent_host, claims->parent_port}), parent->record.data.front().at);
        }
      }
      EXPECT_EQ(entry.aggregator, cluster_->aggregator(entry.aggregator_name)->record.data.front().at);
    }
    for (const auto& [name, seen] : children) EXPECT_EQ(seen.size(), shape[name].children);
    EXPECT_THAT(children, SizeIs(3));
  }
  const auto& token = d.lanes[0].entries[0].tokens[0];
  EXPECT_FALSE(verifier->verify(token, d.expires_at).has_value()) << "the token has expired";
  EXPECT_FALSE(TokenVerifier::create(SigningKey::generate()->public_key())->verify(token, 0).has_value())
      << "another manager's key does not verify it";
}

TEST_F(ClusterTest, AnswersWithAReasonWhenThereIsNoAggregatorAndAdvisesToRebuildWhenOneComes) {
  open();
  const auto grant = ask();
  ASSERT_TRUE(grant.has_value());
  EXPECT_TRUE(grant->descriptor.empty());
  EXPECT_EQ(grant->descriptor.epoch, 0U);
  EXPECT_EQ(grant->retry_after_seconds, 2U);
  EXPECT_THAT(grant->descriptor.reason, HasSubstr("no aggregator is registered"));
  const std::uint64_t id = grant->descriptor.group;
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
  enlist_all();
  EXPECT_TRUE(cluster_->renew_group(id)->rebuild_advised);
  const auto rebuilt = cluster_->rebuild_group(id, 0, {});
  ASSERT_TRUE(rebuilt.has_value());
  EXPECT_EQ(rebuilt->descriptor.epoch, 1U);
  EXPECT_THAT(rebuilt->descriptor.lanes, SizeIs(1));
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
}

TEST_F(ClusterTest, ARenewalTellsTheRatesBesideOtherGroups) {
  open();
  enlist_all();
  const auto first = ask();
  const PathRates alone = first->descriptor.rates;
  ASSERT_NE(alone.links, 0U);
  const std::uint64_t id = first->descriptor.group;
  EXPECT_EQ(cluster_->renew_group(id)->rates, alone);
  const std::uint64_t other = ask()->descriptor.group;
  EXPECT_EQ(cluster_->renew_group(id)->rates.links, alone.links / 2);
  EXPECT_LT(cluster_->renew_group(id)->rates.trees, alone.trees);
  EXPECT_EQ(cluster_->renew_group(id)->rates, cluster_->renew_group(other)->rates) << "both have the same ranks";
  ASSERT_TRUE(cluster_->remove_group(other).has_value());
  EXPECT_EQ(cluster_->renew_group(id)->rates, alone);
  EXPECT_EQ(cluster_->group(id)->record->rates, alone) << "the record keeps what was planned";
}

TEST_F(ClusterTest, ARenewalTellsNoRatesWhereNoneAreKnown) {
  open("");
  ASSERT_TRUE(enlist("a", "anywhere").has_value());
  EXPECT_EQ(cluster_->renew_group(ask()->descriptor.group)->rates, PathRates{});
}

TEST_F(ClusterTest, RebuildsWithoutTheFailedAndGivesTheSameEpochForTheSameRequest) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_TRUE(uses(id, "leaf-a"));
  const auto first = cluster_->rebuild_group(id, 1, {"leaf-a"});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->descriptor.epoch, 2U);
  EXPECT_FALSE(uses(id, "leaf-a"));
  const auto trees = cluster_->group(id)->record->lanes;
  const auto second = cluster_->rebuild_group(id, 1, {"leaf-a"});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->descriptor.epoch, 2U);
  EXPECT_EQ(cluster_->group(id)->record->lanes, trees);
  EXPECT_EQ(cluster_->rebuild_group(id, 2, {"spine"})->descriptor.epoch, 3U);
  for (const std::uint32_t stale : {0U, 1U, 4U, 1000U, UINT32_MAX}) {
    const auto refused = cluster_->rebuild_group(id, stale, {});
    ASSERT_FALSE(refused.has_value()) << stale;
    EXPECT_EQ(refused.error().code, Errc::mismatch);
  }
  EXPECT_EQ(cluster_->rebuild_group(id + 1, 1, {}).error().code, Errc::peer_gone);
}

TEST_F(ClusterTest, UsesAFailedAggregatorAgainWhenItHasRegisteredAgain) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  // All aggregators fail: no tree can be built, however often the group asks.
  for (int i = 0; i < 3; ++i) {
    const auto grant = cluster_->rebuild_group(id, 1, {"leaf-a", "leaf-b", "spine"});
    ASSERT_TRUE(grant.has_value());
    EXPECT_TRUE(grant->descriptor.empty());
    EXPECT_EQ(grant->descriptor.epoch, 1U);
    EXPECT_THAT(grant->descriptor.reason, HasSubstr("3 are avoided because this group saw it fail"));
  }
  EXPECT_EQ(reserved(), 0U);
  clock_.advance(10ms);
  ASSERT_TRUE(enlist("spine", "agg-spine-0").has_value());
  const auto grant = cluster_->rebuild_group(id, 1, {"leaf-a", "leaf-b", "spine"});
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->descriptor.epoch, 2U);
  EXPECT_TRUE(uses(id, "spine"));
  EXPECT_FALSE(uses(id, "leaf-a"));
  // When another aggregator is back, the manager advises a better tree, builds it, and then no longer advises it.
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
  clock_.advance(10ms);
  ASSERT_TRUE(enlist("leaf-a", "agg-leaf-0").has_value());
  EXPECT_EQ(cluster_->renew_group(id)->reason, "aggregator leaf-a is back");
  EXPECT_EQ(cluster_->rebuild_group(id, 2, {}, true)->descriptor.epoch, 3U);
  EXPECT_TRUE(uses(id, "leaf-a"));
  EXPECT_FALSE(cluster_->renew_group(id)->rebuild_advised);
}

TEST_F(ClusterTest, TriesAFailedAggregatorAgainAfterAWhile) {
  open("");
  ASSERT_TRUE(enlist("only", "h").has_value());
  const std::uint64_t id = ask()->descriptor.group;
  EXPECT_TRUE(cluster_->rebuild_group(id, 1, {"only"})->descriptor.empty());
  for (int second = 0; second < 299; ++second) {
    advance(1s);
    ASSERT_TRUE(cluster_->renew_aggregator("only", std::nullopt, {}).has_value());
    ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"only"})->descriptor.empty()) << second;
  }
  advance(1s);
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {"only"})->descriptor.epoch, 2U);
}

TEST_F(ClusterTest, KeepsThePresentTreesIfThereAreNoBetterOnes) {
  open("");
  ASSERT_TRUE(enlist("only", "h", lane_reservation_bytes(4, 128, 16384)).has_value());
  const std::uint64_t id = ask()->descriptor.group;
  const std::uint64_t before = reserved();
  ASSERT_GT(before, 0U);
  // While the group moves, it would need twice the memory.
  const auto grant = cluster_->rebuild_group(id, 1, {}, true);
  ASSERT_TRUE(grant.has_value());
  EXPECT_TRUE(grant->descriptor.empty());
  EXPECT_EQ(cluster_->group(id)->record->epoch, 1U);
  EXPECT_THAT(cluster_->group(id)->record->lanes, SizeIs(1));
  EXPECT_EQ(reserved(), before);
}

TEST_F(ClusterTest, HoldsBothReservationsWhileAGroupMoves) {
  open("");
  ASSERT_TRUE(enlist("only", "h").has_value());
  const std::uint64_t id = ask()->descriptor.group;
  const std::uint64_t once = reserved();
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {}, true)->descriptor.epoch, 2U);
  EXPECT_EQ(reserved(), 2 * once);
  advance(14s);
  ASSERT_TRUE(cluster_->renew_group(id).has_value());
  ASSERT_TRUE(cluster_->renew_aggregator("only", std::nullopt, {}).error().code == Errc::peer_gone);
  ASSERT_TRUE(enlist("only", "h").has_value());
  advance(2s);
  EXPECT_EQ(cluster_->stats().memory_reserved_bytes, 0U) << "the new incarnation holds nothing";
}

TEST_F(ClusterTest, HoldsBothReservationsWhileAGroupMovesThoughTheTopologyChanges) {
  open("");
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_EQ(cluster_->rebuild_group(id, 1, {}, true)->descriptor.epoch, 2U);
  const std::uint64_t both = reserved();
  ASSERT_TRUE(cluster_->put_topology(leaf_spine_yaml(2, 2, 1), "a test").has_value());
  EXPECT_EQ(reserved(), both);
  advance(1min);
  EXPECT_EQ(reserved(), 0U) << "no group has renewed its lease";
}

TEST_F(ClusterTest, GivesABrokenTreesMemoryToTheNextOne) {
  open("");
  ASSERT_TRUE(enlist("only", "h", lane_reservation_bytes(4, 128, 16384)).has_value());
  const std::uint64_t id = ask()->descriptor.group;
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {})->descriptor.epoch, 2U)
      << "the lane broke, and no aggregator is to blame";
  EXPECT_EQ(reserved(), lane_reservation_bytes(4, 128, 16384));
}

TEST_F(ClusterTest, PromisesMemoryOnceAndAgainWhenItIsGivenBack) {
  open("");
  ASSERT_TRUE(enlist("only", "h", lane_reservation_bytes(4, 128, 16384)).has_value());
  const std::uint64_t first = ask()->descriptor.group;
  EXPECT_THAT(ask()->descriptor.lanes, IsEmpty());
  ASSERT_TRUE(cluster_->remove_group(first).has_value());
  EXPECT_THAT(ask()->descriptor.lanes, SizeIs(1));
}

TEST_F(ClusterTest, DividesTheWindowAmongLanesUnlessTheJobNamesIt) {
  open("");
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(enlist(name, "h").has_value());
  const auto window_of = [&](std::uint32_t lanes, std::uint32_t asked) {
    const auto grant = cluster_->create_group({.job = "j", .hosts = nodes(4), .lanes = lanes, .window = asked});
    EXPECT_THAT(grant->descriptor.lanes, SizeIs(lanes));
    return grant->descriptor.lanes[0].window;
  };
  EXPECT_EQ(window_of(1, 0), 128U);
  EXPECT_EQ(window_of(4, 0), 64U);
  EXPECT_EQ(window_of(4, 20), 20U);
}

TEST_F(ClusterTest, WidensTheWindowOfTheLanesThatAreLeft) {
  open("");
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(enlist(name, "h", lane_reservation_bytes(4, 128, 16384)).has_value());
  }
  const auto grant = ask(4);
  ASSERT_THAT(grant->descriptor.lanes, SizeIs(4));
  EXPECT_EQ(grant->descriptor.lanes[0].window, 64U);
  EXPECT_EQ(reserved(), 4 * lane_reservation_bytes(4, 64, 16384));
  // Two lanes do not fit into an aggregator: each has connections of its own besides its segments.
  const auto rebuilt = cluster_->rebuild_group(grant->descriptor.group, 1, {"b", "d"});
  ASSERT_THAT(rebuilt->descriptor.lanes, SizeIs(2));
  EXPECT_EQ(rebuilt->descriptor.lanes[0].window, 128U);
  EXPECT_EQ(reserved(), 2 * lane_reservation_bytes(4, 128, 16384));
}

TEST_F(ClusterTest, GivesNoNewTreesToAnAggregatorWhoseLeaseEnded) {
  open();
  enlist_all();
  for (int i = 0; i < 5; ++i) {
    advance(3s);
    ASSERT_TRUE(cluster_->renew_aggregator("spine", std::nullopt, {}).has_value());
  }
  EXPECT_EQ(cluster_->stats().aggregators_expired, 2U);
  EXPECT_EQ(cluster_->renew_aggregator("leaf-a", std::nullopt, {}).error().code, Errc::peer_gone);
  const std::uint64_t id = ask()->descriptor.group;
  EXPECT_FALSE(uses(id, "leaf-a"));
  EXPECT_TRUE(uses(id, "spine"));
  EXPECT_TRUE(store_.aggregators.at("leaf-a").expired);
  advance(3700s);
  EXPECT_THAT(cluster_->aggregators(), IsEmpty()) << "the manager forgets the aggregator after an hour";
  EXPECT_THAT(store_.aggregators, IsEmpty());
}

TEST_F(ClusterTest, GivesBackWhatAGroupHeldWhenItsLeaseEnds) {
  open();
  enlist_all();
  const std::uint64_t id = ask(2)->descriptor.group;
  EXPECT_GT(reserved(), 0U);
  for (int i = 0; i < 4; ++i) {
    advance(10s);
    ASSERT_TRUE(cluster_->renew_group(id).has_value());
    for (const char* name : {"leaf-a", "leaf-b", "spine"}) (void)cluster_->renew_aggregator(name, std::nullopt, {});
  }
  EXPECT_EQ(cluster_->stats().groups_with_trees, 1U);
  advance(15s);
  EXPECT_EQ(cluster_->stats().groups_with_trees, 0U);
  EXPECT_THAT(store_.groups, IsEmpty());
  EXPECT_EQ(cluster_->renew_group(id).error().code, Errc::peer_gone);
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {}).error().code, Errc::peer_gone);
}

TEST_F(ClusterTest, KnowsAllAfterARestartAndGivesEverybodyAWholeLease) {
  open();
  enlist_all();
  const std::uint64_t id = ask(2)->descriptor.group;
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"leaf-b"}).has_value());
  ASSERT_TRUE(cluster_->set_draining("leaf-b", true).has_value());
  const GroupRecord before = *cluster_->group(id)->record;
  const std::uint64_t held = reserved();
  // No group could renew during this time.
  clock_.advance(1h);
  open();
  EXPECT_EQ(*cluster_->group(id)->record, before);
  EXPECT_EQ(reserved(), held);
  EXPECT_TRUE(cluster_->aggregator("leaf-b")->record.draining);
  cluster_->tick();
  EXPECT_TRUE(cluster_->renew_group(id).has_value());
  EXPECT_TRUE(cluster_->renew_aggregator("leaf-a", std::nullopt, {}).has_value());
  EXPECT_GT(ask()->descriptor.group, id) << "numbers are never used twice";
  EXPECT_GT(enlist("new", "agg-leaf-0")->incarnation, before.lanes[0].nodes[0].incarnation);
}

TEST_F(ClusterTest, ChangesNothingWhileTheStoreIsFullAndGoesOnServing) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  const GroupRecord before = *cluster_->group(id)->record;
  const std::uint64_t held = reserved();
  store_.full = true;
  EXPECT_EQ(ask().error().code, Errc::exhausted);
  EXPECT_EQ(enlist("another", "agg-leaf-0").error().code, Errc::exhausted);
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {"leaf-a"}).error().code, Errc::exhausted);
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {}).error().code, Errc::exhausted);
  EXPECT_EQ(cluster_->remove_group(id).error().code, Errc::exhausted);
  EXPECT_EQ(cluster_->set_draining("spine", true).error().code, Errc::exhausted);
  EXPECT_EQ(*cluster_->group(id)->record, before);
  EXPECT_EQ(reserved(), held);
  EXPECT_THAT(cluster_->aggregators(), SizeIs(3));
  EXPECT_TRUE(cluster_->renew_group(id).has_value()) << "renewals need no room in the store";
  EXPECT_TRUE(cluster_->renew_aggregator("spine", std::nullopt, {}).has_value());
  advance(20s);  // leases end nevertheless
  EXPECT_EQ(cluster_->stats().groups_with_trees, 0U);
  EXPECT_EQ(cluster_->stats().aggregators_expired, 3U);
  EXPECT_THAT(store_.groups, SizeIs(1));
  store_.full = false;
  cluster_->tick();
  EXPECT_THAT(store_.groups, IsEmpty()) << "the change that could not be written is written now";
  EXPECT_TRUE(store_.aggregators.at("spine").expired);
  EXPECT_TRUE(ask().has_value());
}

TEST_F(ClusterTest, DrainsUntilToldOtherwise) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_TRUE(cluster_->set_draining("leaf-a", true).has_value());
  EXPECT_TRUE(*cluster_->renew_aggregator("leaf-a", std::nullopt, {}));
  EXPECT_EQ(cluster_->renew_group(id)->reason, "aggregator leaf-a is draining");
  EXPECT_FALSE(uses(ask()->descriptor.group, "leaf-a"));
  ASSERT_TRUE(enlist("leaf-a", "agg-leaf-0").has_value());
  EXPECT_TRUE(*cluster_->renew_aggregator("leaf-a", std::nullopt, {})) << "a restart does not end the drain";
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {})->descriptor.epoch, 2U);
  EXPECT_FALSE(uses(id, "leaf-a"));
  ASSERT_TRUE(cluster_->set_draining("leaf-a", false).has_value());
  EXPECT_FALSE(*cluster_->renew_aggregator("leaf-a", std::nullopt, {}));
  EXPECT_TRUE(uses(ask()->descriptor.group, "leaf-a"));
}

TEST_F(ClusterTest, RefusesANameThatLivesElsewhereAndRenewalsOfAnOlderIncarnation) {
  open();
  const auto first = enlist("a", "agg-leaf-0");
  EXPECT_EQ(enlist("a", "agg-leaf-1").error().code, Errc::mismatch);
  const auto second = enlist("a", "agg-leaf-0");
  EXPECT_GT(second->incarnation, first->incarnation);
  EXPECT_EQ(cluster_->renew_aggregator("a", first->incarnation, {}).error().code, Errc::peer_gone);
  EXPECT_TRUE(cluster_->renew_aggregator("a", second->incarnation, {}).has_value());
  EXPECT_EQ(enlist("", "agg-leaf-0")->name, "at-10.0.0.1:7003");
  advance(11s);
  EXPECT_TRUE(enlist("a", "agg-leaf-1").has_value()) << "the lease has ended";
}

TEST_F(ClusterTest, PlacesAnAggregatorWhereTheTopologyNamesIt) {
  open(leaf_spine_yaml(2, 2, 1) + "aggregators: [{name: a, host: agg-spine-0}]\n");
  ASSERT_TRUE(enlist("a", "anywhere").has_value());
  ASSERT_TRUE(enlist("b", "anywhere").has_value());
  EXPECT_TRUE(cluster_->aggregator("a")->placed);
  EXPECT_EQ(cluster_->aggregator("a")->record.host, "agg-spine-0");
  EXPECT_FALSE(cluster_->aggregator("b")->placed);
  EXPECT_TRUE(uses(ask()->descriptor.group, "a"));
}

TEST_F(ClusterTest, TakesATopologyOverTheApiAndKeepsItUnlessAFileSaysOtherwise) {
  open("");
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  const std::uint64_t held = reserved();
  ASSERT_TRUE(cluster_->put_topology(leaf_spine_yaml(2, 2, 1), "a test").has_value());
  EXPECT_EQ(reserved(), held);
  EXPECT_EQ(cluster_->put_topology("fabric: torus", "a test").error().code, Errc::bad_argument);
  open("");
  EXPECT_EQ(cluster_->topology()->fabric, FabricKind::fat_tree);
  EXPECT_TRUE(cluster_->group(id).has_value());
  open(leaf_spine_yaml(3, 2, 1));
  EXPECT_THAT(cluster_->topology()->switches, SizeIs(4));
  EXPECT_EQ(cluster_->put_topology(leaf_spine_yaml(2, 2, 1), "a test").error().code, Errc::mismatch);
  ASSERT_TRUE(cluster_->remove_group(id).has_value());
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(ClusterTest, CountsTheLoadOfRunningTreesAtTheLinksOfANewTopology) {
  open("");
  const std::string wide = leaf_spine_yaml(2, 2, 1);
  std::string narrow = wide;
  for (std::size_t at = 0; (at = narrow.find("rate: 100Gbit/s")) != std::string::npos;) {
    narrow.replace(at, 15, "rate: 10Gbit/s");
  }
  enlist_all();
  ASSERT_TRUE(cluster_->put_topology(wide, "a test").has_value());
  const auto seconds = [&] {
    return cluster_->plan({.job = "", .hosts = nodes(4), .lanes = 1})->plan.estimated_seconds;
  };
  const double idle = seconds();
  const std::uint64_t id = ask()->descriptor.group;
  const double loaded = seconds();
  EXPECT_GT(loaded, idle);
  ASSERT_TRUE(cluster_->put_topology(narrow, "a test").has_value());
  EXPECT_GT(seconds(), 5 * loaded);
  EXPECT_EQ(cluster_->group(id)->record->epoch, 1U) << "the group keeps its trees";
  ASSERT_TRUE(cluster_->put_topology(wide, "a test").has_value());
  EXPECT_DOUBLE_EQ(seconds(), loaded) << "the load counts once, whatever topologies there were";
  ASSERT_TRUE(cluster_->remove_group(id).has_value());
  EXPECT_DOUBLE_EQ(seconds(), idle);
}

TEST_F(ClusterTest, PlansWithoutChangingAnything) {
  open();
  enlist_all();
  const int writes = store_.writes;
  const auto view = cluster_->plan({.job = "", .hosts = nodes(4), .lanes = 3, .levels = 2});
  ASSERT_TRUE(view.has_value());
  EXPECT_THAT(view->plan.lanes, SizeIs(3));
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(store_.writes, writes);
}

TEST_F(ClusterTest, NeverPromisesMoreMemoryThanThereIs) {
  open();
  std::mt19937 random(3);
  const auto pick = [&](unsigned below) { return static_cast<std::uint32_t>(random() % below); };
  const std::vector<std::pair<std::string, std::string>> aggregators{
      {"leaf-a", "agg-leaf-0"}, {"leaf-b", "agg-leaf-1"}, {"spine", "agg-spine-0"}, {"extra", "node-0"}};
  std::vector<std::uint64_t> groups;
  for (int step = 0; step < 3000; ++step) {
    switch (pick(10)) {
      case 0: {
        const auto& [name, host] = aggregators[pick(4)];
        clock_.advance(1ms);
        ASSERT_TRUE(enlist(name, host, (pick(20) + 1) * (2ULL << 20)).has_value());
        break;
      }
      case 1:
      case 2:
      case 3: {
        const auto grant = ask(pick(4) + 1, static_cast<int>(pick(4)) + 1);
        ASSERT_TRUE(grant.has_value());
        groups.push_back(grant->descriptor.group);
        break;
      }
      case 4:
      case 5:
      case 6: {
        if (groups.empty()) break;
        const std::uint64_t id = groups[pick(static_cast<unsigned>(groups.size()))];
        const auto group = cluster_->group(id);
        if (!group) break;
        std::vector<std::string> failed;
        if (pick(2) == 0) failed.push_back(aggregators[pick(4)].first);
        ASSERT_TRUE(cluster_->rebuild_group(id, group->record->epoch, failed, pick(2) == 0).has_value());
        break;
      }
      case 7:
        if (!groups.empty()) (void)cluster_->remove_group(groups[pick(static_cast<unsigned>(groups.size()))]);
        break;
      case 8:
        advance(std::chrono::milliseconds(pick(6000)));
        break;
      default:
        for (const auto& it : aggregators) (void)cluster_->renew_aggregator(it.first, std::nullopt, {});
        for (const std::uint64_t id : groups) (void)cluster_->renew_group(id);
    }
    for (const AggregatorView& view : cluster_->aggregators()) {
      ASSERT_LE(view.memory_reserved_bytes, view.record.memory_bytes) << "step " << step << ", " << view.record.name;
    }
    if (step % 200 == 199) {
      // A manager that starts now must have the same view, except for groups that are moving.
      for (const auto& [id, record] : store_.groups) ASSERT_EQ(*cluster_->group(id)->record, record);
    }
  }
  for (const std::uint64_t id : groups) (void)cluster_->remove_group(id);
  EXPECT_EQ(reserved(), 0U);
}

}  // namespace
}  // namespace tributary::manager
