#include "tree-manager/store/sqlite.h"

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

std::unexpected<Error> failure(sqlite3* connection, int code) {
  TRIBUTARY_ASSERT(code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE, "code {} is no error", code);
  const char* path = connection == nullptr ? nullptr : sqlite3_db_filename(connection, "main");
  const std::string where = path == nullptr ? "the manager's database" : "the manager's database " + std::string(path);
  const std::string why = connection == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(connection);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return fail(Errc::exhausted, where + " has no room: " + why + "; free disk space there, nothing was changed");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return fail(Errc::io, where + " is no SQLite database or is damaged: " + why +
                                "; restore it from a backup, or move it away to start with an empty one");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return fail(Errc::io, where + " cannot be opened for writing: " + why +
                                "; check that the directory exists and belongs to the manager's user");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(Errc::retry, where + " is locked by another process: " + why);
    default:
      return fail(Errc::io, where + ": " + why);
  }
}

}  // namespace

int SqliteStatement::next_place() {
  const int places = sqlite3_bind_parameter_count(statement_.get());
  TRIBUTARY_ASSERT(statement_ != nullptr && bound_ < places, "value {} is bound to a statement of {}", bound_ + 1,
                   places);
  return ++bound_;
}

SqliteStatement& SqliteStatement::bind(std::string_view text) {
  const int code =
      sqlite3_bind_text64(statement_.get(), next_place(), text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::bind(std::int64_t number) {
  const int code = sqlite3_bind_int64(statement_.get(), next_place(), number);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::bind(std::uint64_t number) {
  return bind(static_cast<std::int64_t>(number));
}

Result<bool> SqliteStatement::step() {
  TRIBUTARY_ASSERT(statement_ != nullptr, "a statement steps that was never prepared");
  TRIBUTARY_ASSERT(bound_ == sqlite3_bind_parameter_count(statement_.get()), "{} values are bound to a statement of {}",
                   bound_, sqlite3_bind_parameter_count(statement_.get()));
  sqlite3* connection = sqlite3_db_handle(statement_.get());
  if (bind_error_ != SQLITE_OK) return failure(connection, bind_error_);
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  auto error = failure(connection, code);
  sqlite3_reset(statement_.get());
  return error;
}

std::string SqliteStatement::text(int column) const {
  TRIBUTARY_ASSERT(column >= 0 && column < sqlite3_data_count(statement_.get()), "column {} is read of a row of {}",
                   column, sqlite3_data_count(statement_.get()));
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  const int length = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string{}
                          : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::int64_t SqliteStatement::integer(int column) const {
  TRIBUTARY_ASSERT(column >= 0 && column < sqlite3_data_count(statement_.get()), "column {} is read of a row of {}",
                   column, sqlite3_data_count(statement_.get()));
  return sqlite3_column_int64(statement_.get(), column);
}

void SqliteStatement::reset() {
  TRIBUTARY_ASSERT(statement_ != nullptr, "a statement is reset that was never prepared");
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
  bind_error_ = SQLITE_OK;
}

Result<SqliteConnection> SqliteConnection::open(const std::string& path, std::uint32_t busy_milliseconds,
                                                bool to_read_alone) {
  SqliteConnection made;
  sqlite3* raw = nullptr;
  const int mode = to_read_alone ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  made.connection_.reset(raw);
  if (code != SQLITE_OK) return failure(raw, code);
  TRIBUTARY_ASSERT(raw != nullptr, "a database was opened without a connection");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, static_cast<int>(busy_milliseconds));
  return made;
}

Result<SqliteStatement> SqliteConnection::prepare(std::string_view sql) {
  TRIBUTARY_ASSERT(connection_ != nullptr, "a statement is prepared on a connection that was never opened");
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()), 0, &raw, nullptr);
  if (code != SQLITE_OK) return failure(connection_.get(), code);
  TRIBUTARY_ASSERT(raw != nullptr, "no statement was made of '{}'", sql);
  SqliteStatement statement;
  statement.statement_.reset(raw);
  return statement;
}

Status SqliteConnection::execute(const std::string& sql) {
  TRIBUTARY_ASSERT(connection_ != nullptr, "a statement runs on a connection that was never opened");
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(connection_.get(), code);
  return {};
}

Result<std::string> SqliteConnection::single(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->text(0) : std::string{};
}

}  // namespace tributary::manager
