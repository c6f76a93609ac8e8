// Archives of a store: all records of one store get into another store, and a damaged archive is refused.
#include "tree-manager/store/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/cluster_fixture.h"
#include "tests/unit/manager/memory_store.h"
#include "tests/unit/manager/store_records.h"
#include "tests/unit/manager/temporary_folder.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;

Status go_on() {
  return {};
}

MemoryStore full_store() {
  MemoryStore store;
  store.groups[7] = group_record(7, 3);
  store.groups[8] = group_record(8, 2);
  store.aggregators["a"] = {.name = "a", .incarnation = 4, .host = "h", .data = {{.at = {"10.0.0.1", 7471}}}};
  store.values["revoked_tokens"] = R"({"id":5})";
  store.ended[9] = 1000;
  store.leadership = 77;
  return store;
}

Archive archive_of(MemoryStore& store) {
  return *read_archive(store, 1'800'000'000);
}

TEST(Archive, BringsEveryRecordToAnotherStore) {
  MemoryStore from = full_store();
  const std::string text = to_text(archive_of(from));
  const auto archive = archive_from_text(text);
  ASSERT_TRUE(archive.has_value()) << archive.error().message;
  EXPECT_EQ(to_text(*archive), text);
  MemoryStore to;
  ASSERT_TRUE(restore(to, *archive, false, go_on).has_value());
  EXPECT_EQ(to.groups, from.groups);
  EXPECT_EQ(to.aggregators, from.aggregators);
  EXPECT_EQ(to.values["revoked_tokens"], from.values["revoked_tokens"]);
  EXPECT_EQ(to.ended, from.ended);
  EXPECT_EQ(archive_of(to).records.values, archive->records.values);
  EXPECT_GT(to.leadership, from.leadership) << "tokens of the store before are refused";
}

TEST(Archive, ReplacesOnlyWhenAsked) {
  MemoryStore from = full_store();
  const Archive archive = archive_of(from);
  MemoryStore to;
  to.groups[1] = group_record(1, 1);
  to.values["topology"] = "fabric: flat\n";
  to.leadership = 1000;
  EXPECT_EQ(restore(to, archive, false, go_on).error().code, Errc::mismatch);
  EXPECT_TRUE(to.groups.contains(1));
  ASSERT_TRUE(restore(to, archive, true, go_on).has_value());
  EXPECT_EQ(to.groups, from.groups);
  EXPECT_EQ(to.values["topology"], "");
  EXPECT_GE(to.leadership, 1000U);
}

TEST(Archive, AGroupThatWasGivenBackMeanwhileDoesNotComeBack) {
  MemoryStore from = full_store();
  from.ended[8] = 2000;
  MemoryStore to;
  ASSERT_TRUE(restore(to, archive_of(from), false, go_on).has_value());
  EXPECT_FALSE(to.groups.contains(8));
  EXPECT_TRUE(to.ended.contains(8));
}

TEST(Archive, DamageIsNoticed) {
  MemoryStore from = full_store();
  const std::string text = to_text(archive_of(from));
  for (std::size_t cut = 0; cut < text.size(); cut += 7) {
    EXPECT_EQ(archive_from_text(std::string_view(text).substr(0, cut)).error().code, Errc::corrupt) << cut;
  }
  for (std::size_t at = 0; at < text.size(); at += 5) {
    std::string changed = text;
    changed[at] = changed[at] == '1' ? '2' : '1';
    EXPECT_FALSE(archive_from_text(changed).has_value()) << at;
  }
  EXPECT_FALSE(archive_from_text(text + text).has_value());
}

class UnfinishedRestore : public ClusterFixture {};

TEST_F(UnfinishedRestore, LeavesAStoreThatNoManagerOpens) {
  MemoryStore from = full_store();
  int writes = 0;
  const auto killed = [&writes]() -> Status {
    return ++writes == 2 ? fail(Errc::aborted, "the test ends it") : Status{};
  };
  EXPECT_EQ(restore(store_, archive_of(from), false, killed).error().code, Errc::aborted);
  const auto opened = Cluster::open(settings_, store_, key_, clock_, std::nullopt);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("import --replace"));
  EXPECT_EQ(read_archive(store_, 0).error().code, Errc::mismatch);
  ASSERT_TRUE(restore(store_, archive_of(from), true, go_on).has_value());
  open("");
  EXPECT_EQ(cluster_->groups().size(), 2U);
}

TEST(Archive, IsReadFromADatabaseThatAManagerUses) {
  const TemporaryFolder folder;
  const auto store = open_sqlite({.path = folder.file("manager.db"), .fence_min = 50});
  ASSERT_TRUE(store.has_value()) << store.error().message;
  ASSERT_TRUE((*store)->put(group_record(1, 1)).has_value());
  const auto reader = open_sqlite_to_read(folder.file("manager.db"));
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  ASSERT_TRUE((*store)->put(group_record(2, 1)).has_value());
  const auto archive = read_archive(**reader, 5);
  ASSERT_TRUE(archive.has_value()) << archive.error().message;
  EXPECT_EQ(archive->records.groups.size(), 1U) << "as of the moment when it was opened";
  EXPECT_EQ(archive->fence, (*store)->fence());
  EXPECT_FALSE(open_sqlite_to_read(folder.file("none.db")).has_value());
}

}  // namespace
}  // namespace tributary::manager
