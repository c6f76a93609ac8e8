// The manager's state in one SQLite file. Every call is one transaction, which WAL with synchronous=FULL makes durable
// before the call returns.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>

#include "tree-manager/store/records.h"
#include "tree-manager/store/sqlite.h"
#include "tree-manager/store/store.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

/// Migration i changes a database of version i to version i + 1. Migrations may only be appended, because databases of
/// every version exist.
constexpr const char* kMigrations[] = {
    "CREATE TABLE aggregators (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE groups (id INTEGER PRIMARY KEY, record TEXT NOT NULL);"
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE ended_groups (id INTEGER PRIMARY KEY, until INTEGER NOT NULL);"
    "CREATE INDEX ended_groups_until ON ended_groups (until);",
};
constexpr const char* kFenceKey = "fence";
constexpr const char* kReadFence = "SELECT value FROM settings WHERE key = 'fence'";
constexpr int kSchemaVersion = static_cast<int>(std::size(kMigrations));

class SqliteStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> open(const SqliteSettings& settings) {
    auto connection = SqliteConnection::open(settings.path, settings.busy_milliseconds);
    if (!connection) return std::unexpected(connection.error());
    auto store = std::make_unique<SqliteStore>();
    store->connection_ = std::move(*connection);
    if (auto ok = store->prepare(settings); !ok) return std::unexpected(ok.error());
    return store;
  }

  /// Everything is read as of this moment, whatever a manager writes meanwhile.
  static Result<std::unique_ptr<Store>> open_to_read(const std::string& path) {
    auto connection = SqliteConnection::open(path, SqliteSettings{}.busy_milliseconds, true);
    if (!connection) return std::unexpected(connection.error());
    auto store = std::make_unique<SqliteStore>();
    store->connection_ = std::move(*connection);
    if (auto ok = store->connection_.execute("BEGIN"); !ok) return std::unexpected(ok.error());
    const auto version = store->connection_.single("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
    if (*version != std::to_string(kSchemaVersion)) {
      return fail(Errc::io, "the manager's database " + path + " has schema version " + *version +
                                ", and this program reads version " + std::to_string(kSchemaVersion) +
                                "; a manager of this version brings an older database up to date when it starts");
    }
    const auto fence = store->connection_.single(kReadFence);
    if (!fence) return std::unexpected(fence.error());
    store->fence_ = number_in(*fence);
    return store;
  }

  std::uint64_t fence() const override { return fence_.load(std::memory_order_relaxed); }
  Status raise_fence(std::uint64_t seen) override {
    const std::uint64_t next = std::max(fence(), seen) + 1;
    if (auto ok = put_value(kFenceKey, std::to_string(next)); !ok) return ok;
    fence_.store(next, std::memory_order_relaxed);
    return {};
  }

  Result<Snapshot> load() override {
    Snapshot snapshot;
    const auto values = each("SELECT key, value FROM settings", [&](const SqliteStatement& row) -> Status {
      if (row.text(0) != kFenceKey) snapshot.values[row.text(0)] = row.text(1);
      return {};
    });
    if (!values) return std::unexpected(values.error());
    const auto aggregators = read("SELECT record FROM aggregators", aggregator_from_text, snapshot.aggregators);
    if (!aggregators) return std::unexpected(aggregators.error());
    const auto groups = read("SELECT record FROM groups", group_from_text, snapshot.groups);
    if (!groups) return std::unexpected(groups.error());
    return snapshot;
  }

  Status put(const AggregatorRecord& record) override { return run(put_aggregator_, record.name, to_text(record)); }
  Status put(const GroupRecord& record) override { return run(put_group_, record.id, to_text(record)); }
  Status put_value(const std::string& key, const std::string& value) override { return run(put_value_, key, value); }
  Status remove_aggregator(const std::string& name) override { return run(remove_aggregator_, name); }
  Status remove_group(std::uint64_t id) override { return run(remove_group_, id); }
  Status end_group(std::uint64_t id, std::int64_t until) override {
    if (auto ok = connection_.execute("BEGIN IMMEDIATE"); !ok) return ok;
    Status ok = run(end_group_, id, static_cast<std::uint64_t>(until));
    if (ok) ok = run(remove_group_, id);
    if (ok) ok = connection_.execute("COMMIT");
    if (!ok) static_cast<void>(connection_.execute("ROLLBACK"));
    return ok;
  }
  Result<bool> has_ended(std::uint64_t id) override {
    has_ended_.reset();
    has_ended_.bind(id);
    auto row = has_ended_.step();
    has_ended_.reset();
    return row;
  }
  Result<std::vector<EndedGroup>> ended_groups() override {
    std::vector<EndedGroup> all;
    const auto ok = each("SELECT id, until FROM ended_groups ORDER BY id", [&](const SqliteStatement& row) -> Status {
      all.push_back({row.number(0), row.integer(1)});
      return {};
    });
    if (!ok) return std::unexpected(ok.error());
    return all;
  }
  Status forget_ended(std::int64_t now) override { return run(forget_ended_, static_cast<std::uint64_t>(now)); }

 private:
  Status prepare(const SqliteSettings& settings) {
    // A write-ahead log is a file beside the database. On a file system without it, finished writes may be lost.
    const auto mode = connection_.single("PRAGMA journal_mode=WAL");
    if (!mode) return std::unexpected(mode.error());
    if (*mode != "wal") {
      return fail(Errc::io, "the manager's database " + settings.path + " cannot use a write-ahead log (" + *mode +
                                "); keep it on a local file system");
    }
    if (auto ok = connection_.execute("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=16777216;"); !ok) return ok;
    if (auto ok = migrate(settings.path); !ok) return ok;
    if (auto ok = limit_size(settings.bytes_max); !ok) return ok;
    for (const auto& [statement, sql] :
         {std::pair{&put_aggregator_, "INSERT OR REPLACE INTO aggregators (name, record) VALUES (?, ?)"},
          std::pair{&put_group_, "INSERT OR REPLACE INTO groups (id, record) VALUES (?, ?)"},
          std::pair{&put_value_, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)"},
          std::pair{&remove_aggregator_, "DELETE FROM aggregators WHERE name = ?"},
          std::pair{&remove_group_, "DELETE FROM groups WHERE id = ?"},
          std::pair{&end_group_, "INSERT OR REPLACE INTO ended_groups (id, until) VALUES (?, ?)"},
          std::pair{&has_ended_, "SELECT 1 FROM ended_groups WHERE id = ?"},
          std::pair{&forget_ended_, "DELETE FROM ended_groups WHERE until < ?"}}) {
      auto prepared = connection_.prepare(sql);
      if (!prepared) return std::unexpected(prepared.error());
      *statement = std::move(*prepared);
    }
    return begin_leadership(settings.fence_min);
  }

  Status begin_leadership(std::uint64_t fence_min) {
    const auto text = connection_.single(kReadFence);
    if (!text) return std::unexpected(text.error());
    return raise_fence(std::max(number_in(*text), fence_min));
  }
  static std::uint64_t number_in(const std::string& text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  Status migrate(const std::string& path) {
    const auto text = connection_.single("PRAGMA user_version");
    if (!text) return std::unexpected(text.error());
    const int version = std::stoi(*text);
    if (version > kSchemaVersion) {
      return fail(Errc::io, "the manager's database " + path + " has schema version " + *text +
                                ", made by a newer manager; this manager knows versions up to " +
                                std::to_string(kSchemaVersion));
    }
    for (int from = version; from < kSchemaVersion; ++from) {
      const std::string sql = std::string("BEGIN IMMEDIATE;") + kMigrations[from] +
                              "PRAGMA user_version=" + std::to_string(from + 1) + ";COMMIT;";
      if (auto ok = connection_.execute(sql); !ok) {
        (void)connection_.execute("ROLLBACK;");
        return ok;
      }
    }
    return {};
  }

  Status limit_size(std::uint64_t bytes_max) {
    if (bytes_max == 0) return {};
    const auto page = connection_.single("PRAGMA page_size");
    if (!page) return std::unexpected(page.error());
    const std::uint64_t pages = std::max<std::uint64_t>(1, bytes_max / std::stoull(*page));
    return connection_.execute("PRAGMA max_page_count=" + std::to_string(pages) + ";");
  }

  template <class... Values>
  Status run(SqliteStatement& statement, const Values&... values) {
    statement.reset();
    (statement.bind(values), ...);
    const auto row = statement.step();
    statement.reset();
    if (!row) return std::unexpected(row.error());
    TRIBUTARY_ASSERT(!*row, "a statement with {} values that changes rows has read a row", sizeof...(values));
    return {};
  }

  template <class Visit>
  Status each(std::string_view sql, const Visit& visit) {
    auto statement = connection_.prepare(sql);
    if (!statement) return std::unexpected(statement.error());
    while (true) {
      const auto row = statement->step();
      if (!row) return std::unexpected(row.error());
      if (!*row) return {};
      if (auto ok = visit(*statement); !ok) return ok;
    }
  }

  template <class Parse, class Record>
  Status read(std::string_view sql, const Parse& parse, std::vector<Record>& into) {
    return each(sql, [&](const SqliteStatement& row) -> Status {
      auto record = parse(row.text(0));
      if (!record) return std::unexpected(record.error());
      into.push_back(std::move(*record));
      return {};
    });
  }

  SqliteConnection connection_;  // declared before the statements, so that it ends after them
  SqliteStatement put_aggregator_;
  SqliteStatement put_group_;
  SqliteStatement put_value_;
  SqliteStatement remove_aggregator_;
  SqliteStatement remove_group_;
  SqliteStatement end_group_;
  SqliteStatement has_ended_;
  SqliteStatement forget_ended_;
  std::atomic<std::uint64_t> fence_{0};
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_to_read(const std::string& path) {
  return SqliteStore::open_to_read(path);
}

Result<std::unique_ptr<Store>> open_sqlite(const SqliteSettings& settings) {
  std::error_code error;
  if (std::filesystem::is_directory(settings.path, error)) {
    return fail(Errc::io, "the manager's database " + settings.path + " is a directory");
  }
  return SqliteStore::open(settings);
}

}  // namespace tributary::manager
