#pragma once
// The reload that SIGHUP asks for: the manager reads its files again. Changes that need the store wait for it.
#include <functional>
#include <optional>

#include "tree-manager/api/audit_log.h"
#include "tree-manager/daemon/serve.h"

namespace tributary::manager {

/// The changes that SIGHUP makes, except the changes to the log and the audit log. The functions log their own errors
/// about files.
struct Reload {
  std::function<void(const Settings&)> files;  // changes that need no store
  /// Changes that need the store. An error says that the store did not take them: they are tried again. False says that
  /// a file is wrong.
  std::function<Result<bool>(const Settings&)> records;
};

/// Used by one thread.
class Reloader {
 public:
  /// `audit` may be nullptr.
  Reloader(ReadSettings read_again, AuditLog* audit, Reload changes)
      : read_again_(std::move(read_again)), audit_(audit), changes_(std::move(changes)) {}

  /// Reads all files. Makes changes of an earlier reload that still wait, too, unless the configuration is wrong: then
  /// nothing changes, and they still wait.
  void begin();
  /// True if changes wait for the store: call go_on() from time to time.
  [[nodiscard]] bool waits() const noexcept { return waiting_.has_value(); }
  /// Tries the changes that wait.
  void go_on();

 private:
  const ReadSettings read_again_;
  AuditLog* const audit_;
  const Reload changes_;
  std::optional<Settings> waiting_;  // settings of the reload whose changes wait
};

}  // namespace tributary::manager
