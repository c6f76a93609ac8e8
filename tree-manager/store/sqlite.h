#pragma once
// Owners of SQLite's C objects: a connection and a prepared statement. They return errors as values.
#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::manager {

/// One statement. bind() sets its parameters from left to right, step() runs it. It must not outlive its connection.
class SqliteStatement {
 public:
  SqliteStatement& bind(std::string_view text);
  SqliteStatement& bind(std::uint64_t number);  // stored as the signed number with the same bits
  SqliteStatement& bind(std::int64_t number);
  /// Returns true if there is a row.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::uint64_t number(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  /// Makes the statement ready to be bound again.
  void reset();

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  [[nodiscard]] int next_place();

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
  int bind_error_ = SQLITE_OK;
};

class SqliteConnection {
 public:
  [[nodiscard]] static Result<SqliteConnection> open(const std::string& path, std::uint32_t busy_milliseconds,
                                                     bool to_read_alone = false);
  [[nodiscard]] Result<SqliteStatement> prepare(std::string_view sql);
  /// Runs one or more statements and drops their results.
  [[nodiscard]] Status execute(const std::string& sql);
  /// Returns the first column of the first row; an empty text if there is no row.
  [[nodiscard]] Result<std::string> single(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close(connection); }
  };
  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace tributary::manager
