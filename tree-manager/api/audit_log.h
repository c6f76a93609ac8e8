#pragma once
// The audit log: each line has the caller, the change that the caller asked for, its object, and the outcome. The
// manager appends lines of JSON to the file, and changes nothing else in it.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tree-manager/identity/identity.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

struct AuditEntry {
  const Identity* who = nullptr;  // nullptr: a caller without a proved name
  std::string from;               // address
  std::string method;
  std::string path;
  std::string object{};  // what the request made or revoked, where the path does not name it
  unsigned status = 0;
  std::string why;     // reason of a refusal
  std::string code{};  // word for the reason why a group got no trees
};

/// Any thread may call it. It never throws because of an entry's texts, and waits only for the disk.
class AuditLog {
 public:
  static constexpr std::size_t kLineBytesMax = 4096;
  static constexpr std::uint32_t kStrangersPerSecondMax = 20;  // most lines about strangers; more are counted

  /// Opens or makes the file, with mode 0640. Errc::bad_config has the reason of a failure.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(const std::string& path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void write(const AuditEntry& entry, std::int64_t now_s);
  /// Opens the path again, after the file was moved away. After an error the old file stays in use.
  [[nodiscard]] Status reopen();

 private:
  AuditLog(std::string path, int file);
  [[nodiscard]] bool append(const std::string& line);

  const std::string path_;
  std::mutex mutex_;  // guards all members below
  int file_;
  std::int64_t second_ = 0;
  std::uint32_t strangers_ = 0;  // lines about callers without a name in this second
  std::uint64_t left_out_ = 0;   // number of unwritten lines about callers without a name
  std::uint64_t lost_ = 0;       // number of lines that the disk did not take
  bool torn_ = false;            // the file ends in the beginning of a line
};

}  // namespace tributary::manager
