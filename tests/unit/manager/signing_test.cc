// A new signing key while the manager runs.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SigningTest : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    enlist_all();
  }
  void renew_all() {
    for (const char* name : {"leaf-a", "leaf-b", "spine"})
      ASSERT_TRUE(cluster_->renew_aggregator(name, std::nullopt, {}).has_value());
  }
  static bool signed_with(const SigningKey& key, const Token& token) {
    return TokenVerifier::create(key.public_key())->verify(token, 0).has_value();
  }
  static const Token& token_of(const GroupGrant& grant) {
    return grant.descriptor.lanes.at(0).entries.at(0).tokens.front();
  }
};

TEST_F(SigningTest, AnAggregatorGetsNewTreesWhenItsRenewalHasToldItTheNewKey) {
  const auto before = ask();
  EXPECT_TRUE(signed_with(key_, token_of(*before)));
  const SigningKey next = *SigningKey::generate();
  cluster_->signing().use(next);
  const auto meanwhile = ask();
  EXPECT_THAT(meanwhile->descriptor.lanes, IsEmpty());
  EXPECT_THAT(meanwhile->descriptor.reason, HasSubstr("3 are not told of the manager's new signing key yet"));
  EXPECT_THAT(cluster_->group(before->descriptor.group)->record->lanes, SizeIs(1)) << "trees that exist stay";
  renew_all();
  EXPECT_TRUE(cluster_->renew_group(meanwhile->descriptor.group)->rebuild_advised);
  const auto after = ask();
  ASSERT_THAT(after->descriptor.lanes, SizeIs(1)) << after->descriptor.reason;
  EXPECT_TRUE(signed_with(next, token_of(*after)));
  EXPECT_FALSE(signed_with(key_, token_of(*after)));
  const auto page = cluster_->places(before->descriptor.group, 1, 0, 1);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_TRUE(signed_with(next, page->lanes.at(0).at(0).tokens.front())) << "also places of earlier trees";
}

TEST_F(SigningTest, ARecordThatTheEarlierKeySealedProvesNothing) {
  const auto group = ask();
  cluster_->signing().use(*SigningKey::generate());
  const auto taken = cluster_->adopt_group(group->descriptor.group, group->record, nodes(4));
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Errc::bad_argument);
  const auto fresh = cluster_->sealed_record(group->descriptor.group);
  EXPECT_TRUE(cluster_->adopt_group(group->descriptor.group, *fresh, nodes(4)).has_value());
}

}  // namespace
}  // namespace tributary::manager
