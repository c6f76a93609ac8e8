// The store on a real etcd keeps the promises of all stores, and refuses writes after the end of a leadership.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/system/replicas/etcd_process.h"
#include "tests/unit/manager/store_conformance.h"
#include "tests/unit/manager/store_records.h"
#include "tree-manager/store/etcd/etcd_election.h"
#include "tree-manager/store/etcd/etcd_store.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

const EtcdProcesses& one_etcd() {
  static const EtcdProcesses etcd(1);
  return etcd;
}

/// One store in the common etcd, with a separate prefix.
class EtcdWorld final : public StoreWorld {
 public:
  EtcdWorld()
      : settings_{.endpoints = one_etcd().endpoints(),
                  .prefix = "/test-" + std::to_string(++worlds) + "/",
                  .attempt_limit = 10s},  // the conformance tests read many megabytes, also under a sanitizer
        election_(EtcdElection::create(settings_, "http://127.0.0.1:1", "test", 5s).value()) {}
  ~EtcdWorld() override { end(); }

  std::unique_ptr<Store> open() override { return begin(); }
  std::unique_ptr<EtcdStore> begin() {
    end();
    lease_ = election_->make_lease(60s).value();
    return open_etcd(settings_, {.fence_base_min = 1000}, election_->stand(lease_).value().value()).value();
  }
  /// Ends the leadership without telling its store.
  void end() {
    if (lease_ != 0) election_->resign(std::exchange(lease_, 0));
  }
  [[nodiscard]] EtcdElection& election() { return *election_; }
  /// Returns the value of a key, as etcd has it.
  [[nodiscard]] std::string raw(const std::string& name) const {
    const auto client = EtcdClient::create(settings_);
    const auto answer = (*client)->call("/v3/kv/range", {{"key", (*client)->key(name)}}, 5s);
    return answer && answer->contains("kvs") ? etcd_text(answer->at("kvs")[0], "value").value_or("") : "";
  }
  /// Writes a key as another version of the manager might.
  void put_raw(const std::string& name, const std::string& value) const {
    const auto client = EtcdClient::create(settings_);
    const nlohmann::json put = {{"key", (*client)->key(name)}, {"value", to_base64_text(value)}};
    EXPECT_TRUE((*client)->call("/v3/kv/put", put, 5s).has_value());
  }
  [[nodiscard]] Result<std::unique_ptr<Store>> try_to_begin() {
    end();
    lease_ = election_->make_lease(60s).value();
    return open_etcd(settings_, {.fence_base_min = 1000}, election_->stand(lease_).value().value());
  }
  [[nodiscard]] Result<std::unique_ptr<EtcdStore>> reader() const { return open_etcd_to_read(settings_, {}); }
  /// Deletes the leader's key, although its lease lives.
  void take_key_away() const {
    const auto client = EtcdClient::create(settings_);
    const nlohmann::json key = {{"key", (*client)->key(kLeaderKey)}};
    EXPECT_TRUE((*client)->call("/v3/kv/deleterange", key, 5s).has_value());
  }

 private:
  inline static int worlds = 0;
  const EtcdSettings settings_;
  std::unique_ptr<EtcdElection> election_;
  LeaseId lease_ = 0;
};

class EtcdStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --cluster";
    world_ = std::make_unique<EtcdWorld>();
  }
  std::unique_ptr<EtcdWorld> world_;
};

TEST_F(EtcdStoreTest, WritesNothingWhenAnotherLeadershipHasBegun) {
  const auto old = world_->begin();
  ASSERT_TRUE(old->put_value("k", "old").has_value());
  const auto next = world_->begin();
  EXPECT_GT(next->fence(), old->fence());
  EXPECT_EQ(old->put_value("k", "too late").error().code, Errc::retry);
  EXPECT_TRUE(old->lost());
  EXPECT_EQ(old->put(group_record(1, 1)).error().code, Errc::retry);
  EXPECT_EQ(old->raise_fence(1'000'000).error().code, Errc::retry);
  EXPECT_FALSE(next->lost());
  const auto snapshot = next->load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_EQ(snapshot->values.at("k"), "old");
  EXPECT_TRUE(snapshot->groups.empty());
}

/// The old lease still lives, so only the leader's key can make etcd refuse the write.
TEST_F(EtcdStoreTest, WritesNothingUnderAKeyThatAnotherHasMade) {
  const auto old = world_->begin();
  world_->take_key_away();
  const auto lease = world_->election().make_lease(60s);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(world_->election().stand(*lease)->has_value());
  EXPECT_EQ(old->put_value("k", "too late").error().code, Errc::retry);
  EXPECT_TRUE(old->lost());
  world_->election().resign(*lease);
}

TEST_F(EtcdStoreTest, WritesNothingWhenItsLeaseHasEnded) {
  const auto store = world_->begin();
  world_->end();
  EXPECT_EQ(store->put_value("k", "v").error().code, Errc::retry);
  EXPECT_TRUE(store->lost());
}

TEST_F(EtcdStoreTest, ElectsOneAndShowsItToTheOthers) {
  const auto store = world_->begin();
  const auto other = world_->election().make_lease(60s);
  ASSERT_TRUE(other.has_value());
  EXPECT_FALSE(world_->election().stand(*other)->has_value());
  EXPECT_EQ(world_->election().look()->value().url, "http://127.0.0.1:1");
  EXPECT_EQ(world_->election().renew(*other), true);
  world_->election().resign(*other);
  EXPECT_EQ(world_->election().renew(*other), false);
}

TEST_F(EtcdStoreTest, ValuesAreReadOneByOne) {
  const auto store = world_->begin();
  EXPECT_EQ(store->value("k").value(), "");
  ASSERT_TRUE(store->put_value("k", "=v").has_value());
  EXPECT_EQ(store->value("k").value(), "=v");
}

/// A newer manager leads for a while, and then an older one leads again.
TEST_F(EtcdStoreTest, ReadsARecordWithAMemberThatOnlyNewerManagersKnow) {
  const GroupRecord record = group_record(1, 1);
  ASSERT_TRUE(world_->begin()->put(record).has_value());
  const std::string key = "group/00000000000000000001";
  auto newer = nlohmann::json::parse(world_->raw(key).substr(1));
  newer["a_member_of_later"] = {{"any", 1}};
  world_->put_raw(key, "=" + newer.dump());
  const auto store = world_->begin();
  const auto snapshot = store->load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  ASSERT_EQ(snapshot->groups.size(), 1U);
  EXPECT_EQ(snapshot->groups[0], record);
  ASSERT_TRUE(store->put(record).has_value());
  EXPECT_FALSE(world_->raw(key).contains("a_member_of_later")) << "a write drops what this version does not know";
}

TEST_F(EtcdStoreTest, RefusesRecordsOfAFormThatOnlyNewerManagersRead) {
  ASSERT_TRUE(world_->begin()->put(group_record(1, 1)).has_value());
  EXPECT_EQ(world_->raw("form"), "1");
  world_->put_raw("form", "2");
  const auto refused = world_->try_to_begin();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().message.find("form 2, and this manager reads form 1 at most"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(world_->raw("form"), "2") << "the older manager has written nothing";
  auto reader = world_->reader();
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ((*reader)->load().error().code, Errc::unsupported) << "a follower shows no copy either";
}

std::vector<StoreKind> kinds() {
  if (!has_etcd()) return {};
  return {{"Etcd", [] { return std::make_unique<EtcdWorld>(); }}};
}
INSTANTIATE_TEST_SUITE_P(Kinds, StoreConformance, ::testing::ValuesIn(kinds()), StoreConformance::name_of);

}  // namespace
}  // namespace tributary::manager
