// Contents of tokens: the secrets of places, when the manager makes none, and the owner of the group.
#include <nlohmann/json.hpp>

#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

class SecretsTest : public ClusterFixture {
 protected:
  SecretsTest() : aggregator_(ExchangeKey::generate().value()), ranks_(ExchangeKey::generate().value()) {}

  /// Opens a fabric with one leaf for all ranks; the leaf has its own key, or none.
  void open_with(bool key) {
    open(leaf_spine_yaml(1, 4, 1));
    auto registered = cluster_->register_aggregator({.name = "leaf-a",
                                                     .host = "agg-leaf-0",
                                                     .data = {"10.0.0.1", 7471},
                                                     .http = {"10.0.0.1", 7472},
                                                     .memory_bytes = kMemory,
                                                     .children_max = kChildrenMax,
                                                     .version = "test",
                                                     .exchange_key = key ? to_base64(aggregator_.public_key()) : ""});
    ASSERT_TRUE(registered) << registered.error().message;
    manager_ = registered->exchange_key;
  }
  Result<GroupGrant> ask_with(PacketSecurity security, bool key) {
    return cluster_->create_group({.job = "job",
                                   .hosts = nodes(4),
                                   .lanes = 1,
                                   .packet_security = security,
                                   .exchange_key = key ? to_base64(ranks_.public_key()) : ""});
  }
  static TokenClaims claims_of(const GroupGrant& grant, std::uint32_t rank) {
    return read_claims(grant.descriptor.lanes.at(0).entries.at(rank).tokens.front()).value();
  }

  ExchangeKey aggregator_, ranks_;
  ExchangePublicKey manager_{};
};

TEST_F(SecretsTest, AreInTheTokensOfAGroupThatGaveAKeyAndSealsNothing) {
  open_with(true);
  const auto grant = ask_with(PacketSecurity::off, true);
  ASSERT_TRUE(grant) << grant.error().message;
  EXPECT_EQ(grant->descriptor.security, PacketSecurity::off);
  EXPECT_EQ(grant->descriptor.exchange_key, manager_);
  const auto back = group_descriptor_from_json(to_json(grant->descriptor));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->exchange_key, manager_);
  EXPECT_EQ(back->security, PacketSecurity::off);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const TokenClaims claims = claims_of(*grant, rank);
    const LinkName name{claims.group, claims.epoch, claims.lane, claims.child};
    // The rank unmasks from its token the secret that the aggregator computes for any child that claims the place.
    EXPECT_EQ(masked(claims.masked_secret, ranks_.agree(manager_).value(), name, "leaf-a"),
              link_secret(aggregator_.agree(manager_).value(), name));
  }
}

TEST_F(SecretsTest, NoneAreMadeWithoutTheGroupsKey) {
  open_with(true);
  const auto grant = ask_with(PacketSecurity::off, false);
  ASSERT_TRUE(grant) << grant.error().message;
  EXPECT_EQ(grant->descriptor.exchange_key, ExchangePublicKey{});
  EXPECT_EQ(claims_of(*grant, 0).masked_secret, LinkSecret{});
  EXPECT_FALSE(to_json(grant->descriptor).contains("exchange_key"));
}

TEST_F(SecretsTest, NoneAreMadeForAnAggregatorWithoutAKeyUnlessPacketsMustBeSealed) {
  open_with(false);
  const auto grant = ask_with(PacketSecurity::off, true);
  ASSERT_TRUE(grant) << grant.error().message;
  EXPECT_EQ(claims_of(*grant, 0).masked_secret, LinkSecret{});
  EXPECT_FALSE(ask_with(PacketSecurity::authenticate, true));
}

TEST_F(SecretsTest, NeedAValidKey) {
  open_with(true);
  const auto bad = cluster_->create_group({.job = "job", .hosts = nodes(4), .lanes = 1, .exchange_key = "AAAA"});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("exchange_key"), std::string::npos);
}

TEST_F(SecretsTest, NameTheOwnerOfTheGroupInEveryToken) {
  open_with(true);
  const auto owned = cluster_->create_group({.job = "job", .hosts = nodes(4), .lanes = 1, .owner = "physics"});
  ASSERT_TRUE(owned) << owned.error().message;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(claims_of(*owned, rank).tenant, "physics");
    EXPECT_EQ(claims_of(*owned, rank).weight, 1);
  }
  const auto nobodys = ask_with(PacketSecurity::off, false);
  ASSERT_TRUE(nobodys) << nobodys.error().message;
  EXPECT_EQ(claims_of(*nobodys, 0).tenant, "");
}

}  // namespace
}  // namespace tributary::manager
