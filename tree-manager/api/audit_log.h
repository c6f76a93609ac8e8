#pragma once
// The audit log: who asked the manager for which change, on what, and what came of it. A file to which lines of JSON
// are added and nothing else.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tree-manager/identity/identity.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

struct AuditEntry {
  const Identity* who = nullptr;  // nullptr: nobody that could prove a name
  std::string from;               // address
  std::string method;
  std::string path;
  unsigned status = 0;
  std::string why;  // of a refusal
};

/// Any thread. Never throws for what entries hold, and never waits for more than the disk.
class AuditLog {
 public:
  static constexpr std::size_t kLineBytesMax = 4096;
  static constexpr std::uint32_t kStrangersPerSecondMax = 20;  // lines about nobody; more are counted alone

  /// Opens or makes the file, with mode 0640. Errc::bad_config says why that fails.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(const std::string& path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void write(const AuditEntry& entry, std::int64_t now_s);
  /// Opens the path anew, after the file was moved away. On an error the open file stays in use.
  [[nodiscard]] Status reopen();

 private:
  AuditLog(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  std::mutex mutex_;  // guards everything below
  int file_;
  std::int64_t second_ = 0;
  std::uint32_t strangers_ = 0;  // lines about nobody in this second
  std::uint64_t left_out_ = 0;   // lines about nobody that were not written
  bool complained_ = false;
};

}  // namespace tributary::manager
