#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <set>

#include "tests/unit/manager/memory_store.h"
#include "tests/unit/manager/store_conformance.h"
#include "tests/unit/manager/store_records.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tree-manager/store/records.h"
#include "tree-manager/store/sqlite.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;

AggregatorRecord aggregator(const std::string& name, std::uint64_t incarnation) {
  return aggregator_record(name, incarnation);
}

GroupRecord group(std::uint64_t id, std::uint32_t epoch) {
  return group_record(id, epoch);
}

std::unique_ptr<Store> open_or_die(const SqliteSettings& settings) {
  auto store = open_sqlite(settings);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

TEST(Records, ReadWhatTheyWrite) {
  EXPECT_EQ(*aggregator_from_text(to_text(aggregator("a", 5))), aggregator("a", 5));
  EXPECT_EQ(*group_from_text(to_text(group(1ULL << 52, 9))), group(1ULL << 52, 9));
  for (const char* text : {"", "{}", "[]", "null", "{\"name\":3}"}) {
    EXPECT_FALSE(aggregator_from_text(text).has_value());
    EXPECT_FALSE(group_from_text(text).has_value());
  }
}

/// Returns the text of a group in which the first `old` is `fresh`.
std::string changed(const std::string& old, const std::string& fresh) {
  std::string text = to_text(group(1, 1));
  const std::size_t at = text.find(old);
  if (at == std::string::npos) throw std::runtime_error(text + " has no " + old);
  return text.replace(at, old.size(), fresh);
}

TEST(Records, ARecordWithWrongWeightsOrWindowsIsDamaged) {
  for (const char* odd : {"0", "65", "-1", "4294967295", "\"5\"", "null", "[]"})
    EXPECT_FALSE(group_from_text(changed("\"weight\":5", "\"weight\":" + std::string(odd)))) << odd;
  for (const char* odd : {"257", "-1", "\"5\"", "null"})
    EXPECT_FALSE(group_from_text(changed("\"window\":7", "\"window\":" + std::string(odd)))) << odd;
}

TEST(Records, WrongRatesCountAsUnknown) {
  const auto rates = [](const std::string& text) {
    const auto read = group_from_text(changed("[10,11,12,13,14,15]", text));
    EXPECT_TRUE(read.has_value()) << text;
    return read ? read->rates : PathRates{.links = 1};
  };
  EXPECT_EQ(rates("[10,-1,12]"), (PathRates{.links = 10, .trees = 0, .ranks = 12}));
  EXPECT_EQ(rates("[9007199254740993,11,1.5]"), (PathRates{.links = 0, .trees = 11, .ranks = 0}));
  EXPECT_EQ(rates("[10,\"11\",null]"), (PathRates{.links = 10, .trees = 0, .ranks = 0}));
  EXPECT_EQ(rates("[10,11,12]"), (PathRates{.links = 10, .trees = 11, .ranks = 12})) << "an older manager's record";
  EXPECT_EQ(rates("[10,11,12,13,-1,15,16]"),
            (PathRates{.links = 10, .trees = 11, .ranks = 12, .doubling = 13, .spread = 15}));
  for (const char* odd : {"[10,11]", "[]", "7", "null", "{}"}) EXPECT_EQ(rates(odd), PathRates{}) << odd;
}

TEST(Records, RecordsOfAnOlderManagerHaveEqualLanes) {
  const auto read = group_from_text(changed(",\"weight\":5,\"window\":7", ""));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->lanes[0].weight, 1U);
  EXPECT_EQ(window_of(*read, read->lanes[0]), read->window);
}

TEST(Store, SaysWhatIsWrongWithTheFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(open_sqlite({.path = folder.file("no/such/folder/m.db")}).error().message,
              HasSubstr("cannot be opened for writing"));
  EXPECT_THAT(open_sqlite({.path = folder.path()}).error().message, HasSubstr("is a directory"));
  std::ofstream(folder.file("text.db")) << std::string(5000, 'x');
  EXPECT_THAT(open_sqlite({.path = folder.file("text.db")}).error().message,
              HasSubstr("is no SQLite database or is damaged"));
}

TEST(Store, RefusesADatabaseOfANewerManager) {
  const TemporaryFolder folder;
  {
    (void)open_or_die({.path = folder.file("m.db")});
  }
  {
    auto connection = SqliteConnection::open(folder.file("m.db"), 1000);
    ASSERT_TRUE(connection.has_value());
    ASSERT_TRUE(connection->execute("PRAGMA user_version=1000;").has_value());
  }
  EXPECT_THAT(open_sqlite({.path = folder.file("m.db")}).error().message, HasSubstr("made by a newer manager"));
}

TEST(Store, SaysThatARecordIsDamaged) {
  const TemporaryFolder folder;
  const auto store = open_or_die({.path = folder.file("m.db")});
  auto connection = SqliteConnection::open(folder.file("m.db"), 1000);
  ASSERT_TRUE(connection->execute("INSERT INTO groups VALUES (1, 'nonsense');").has_value());
  const auto snapshot = store->load();
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_THAT(snapshot.error().message, HasSubstr("a group that cannot be read"));
}

TEST(Store, ChangesNothingWhenItIsFullAndGoesOnWhenThereIsRoomAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.db");
  const auto store = open_or_die({.path = path, .bytes_max = 100'000});
  std::set<std::uint64_t> put;
  Status last;
  for (std::uint64_t id = 1; id < 10'000 && (last = store->put(group(id, 1))); ++id) put.insert(id);
  ASSERT_FALSE(last.has_value());
  EXPECT_EQ(last.error().code, Errc::exhausted);
  EXPECT_THAT(last.error().message, HasSubstr("has no room"));
  EXPECT_GT(put.size(), 10U);
  EXPECT_EQ(store->load()->groups.size(), put.size());
  for (const std::size_t half = put.size() / 2; put.size() > half;) {
    ASSERT_TRUE(store->remove_group(*put.begin()).has_value()) << "removing needs no room";
    put.erase(put.begin());
  }
  EXPECT_TRUE(store->put(group(20'000, 1)).has_value());
  EXPECT_EQ(store->load()->groups.size(), put.size() + 1);
}

/// The writer's changes. Each follows only from its number, so the reader knows the expected content.
struct Workload {
  std::map<std::uint64_t, std::uint32_t> groups;  // id -> epoch
  std::map<std::string, std::uint64_t> aggregators;

  static std::string name(std::uint64_t step) { return "a" + std::to_string(step % 7); }
  void apply(std::uint64_t step) {
    switch (step % 4) {
      case 0:
      case 1:
        groups[step % 11] = static_cast<std::uint32_t>(step);
        break;
      case 2:
        aggregators[name(step)] = step;
        break;
      default:
        if (step % 8 == 3) {
          groups.erase(step % 11);
        } else {
          aggregators.erase(name(step));
        }
    }
  }
  static Status write(Store& store, std::uint64_t step) {
    switch (step % 4) {
      case 0:
      case 1:
        return store.put(group(step % 11, static_cast<std::uint32_t>(step)));
      case 2:
        return store.put(aggregator(name(step), step));
      default:
        return step % 8 == 3 ? store.remove_group(step % 11) : store.remove_aggregator(name(step));
    }
  }
  static Workload of(const Snapshot& snapshot) {
    Workload seen;
    for (const GroupRecord& it : snapshot.groups) seen.groups[it.id] = it.epoch;
    for (const AggregatorRecord& it : snapshot.aggregators) seen.aggregators[it.name] = it.incarnation;
    return seen;
  }
  friend bool operator==(const Workload&, const Workload&) = default;
};

/// Writes from `step` on, and reports each completed step to `acknowledge`. It ends only when the test kills it.
[[noreturn]] void write_until_killed(const std::string& path, std::uint64_t step, int acknowledge) {
  auto store = open_sqlite({.path = path});
  if (!store) ::_exit(3);
  for (;; ++step) {
    if (!Workload::write(**store, step)) ::_exit(4);
    if (::write(acknowledge, &step, sizeof step) != sizeof step) ::_exit(5);
  }
}

TEST(Store, KeepsAllAcknowledgedWritesAfterAKillAtAnyMoment) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.db");
  std::mt19937 random(11);
  Workload expected;
  std::uint64_t next = 0;
  for (int round = 0; round < 25; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe_ends[0]);
      write_until_killed(path, next, pipe_ends[1]);
    }
    ::close(pipe_ends[1]);
    // Draw the moment of the kill: a number of acknowledged changes, and then microseconds within the next change.
    std::uint64_t last = 0;
    bool any = false;
    const std::uint64_t changes = random() % 60;
    for (std::uint64_t i = 0; i < changes && ::read(pipe_ends[0], &last, sizeof last) == sizeof last; ++i) any = true;
    ::usleep(static_cast<useconds_t>(random() % 3000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
    for (std::uint64_t step = 0; ::read(pipe_ends[0], &step, sizeof step) == sizeof step; last = step) any = true;
    ::close(pipe_ends[0]);

    for (; any && next <= last; ++next) expected.apply(next);
    const auto snapshot = open_or_die({.path = path})->load();
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const Workload seen = Workload::of(*snapshot);
    // The store has made the change in progress completely, or not at all.
    Workload one_more = expected;
    one_more.apply(next);
    ASSERT_TRUE(seen == expected || seen == one_more) << "round " << round << ", step " << next;
    if (seen == one_more && !(seen == expected)) expected.apply(next++);
  }
  EXPECT_GT(next, 50U);
}

TEST(Store, StartsWithAFenceAboveThatOfADatabaseThatWasLost) {
  const TemporaryFolder folder;
  const auto lost = open_or_die({.path = folder.file("lost.db"), .fence_min = 5000});
  const auto fresh = open_or_die({.path = folder.file("fresh.db"), .fence_min = 6000});
  EXPECT_GT(fresh->fence(), lost->fence());
}

TEST(Store, RaisesTheFenceAlthoughTheClockWasSetBack) {
  const TemporaryFolder folder;
  const auto first = open_or_die({.path = folder.file("m.db"), .fence_min = 5000})->fence();
  EXPECT_GT(open_or_die({.path = folder.file("m.db"), .fence_min = 10})->fence(), first);
}

/// SQLite and the test's store, for the suite that all kinds of stores pass.
class SqliteWorld final : public StoreWorld {
 public:
  std::unique_ptr<Store> open() override { return open_or_die({.path = folder_.file("m.db")}); }

 private:
  const TemporaryFolder folder_;
};

class MemoryWorld final : public StoreWorld {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<SharedStore>(records_); }

 private:
  const std::shared_ptr<MemoryStore> records_ = std::make_shared<MemoryStore>();
};

INSTANTIATE_TEST_SUITE_P(Kinds, StoreConformance,
                         ::testing::Values(StoreKind{"Sqlite", [] { return std::make_unique<SqliteWorld>(); }},
                                           StoreKind{"Memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         StoreConformance::name_of);

}  // namespace
}  // namespace tributary::manager
