#include "tree-manager/api/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spdlog/spdlog.h>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::size_t kPathBytesMax = 128;
constexpr std::size_t kWhyBytesMax = 320;
constexpr std::size_t kObjectBytesMax = 200;

Result<int> open_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file >= 0) return file;
  return fail(Errc::bad_config, "the audit log " + path + " cannot be opened: " + std::strerror(errno));
}

/// True if the file ends in the beginning of a line: the disk was full, or the machine stopped. A file that this
/// process may not read counts as whole.
bool is_torn(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  struct stat now{};
  char last = '\n';
  const bool has_text = ::fstat(file, &now) == 0 && S_ISREG(now.st_mode) && now.st_size > 0;
  const bool read = has_text && ::pread(file, &last, 1, now.st_size - 1) == 1;
  ::close(file);
  return read && last != '\n';
}

std::string text_of(const json& line) {
  return line.dump(-1, ' ', true, json::error_handler_t::replace) + '\n';
}

/// A character becomes at most six in JSON, so texts are cut. Only where almost every character becomes six, the line
/// is still too long, and has no reason.
std::string line_of(const AuditEntry& entry, std::int64_t now_s, std::uint64_t left_out, std::uint64_t lost) {
  json line = {{"time", now_s},
               {"who", entry.who != nullptr ? entry.who->name : ""},
               {"from", entry.from.substr(0, 64)},
               {"method", entry.method.substr(0, 16)},
               {"path", entry.path.substr(0, kPathBytesMax)},
               {"status", entry.status},
               {"outcome", entry.status < 300 ? "done" : "refused"}};
  if (entry.who != nullptr) line["role"] = to_string(entry.who->roles);
  if (entry.who != nullptr && !entry.who->tenant.empty()) line["tenant"] = entry.who->tenant;
  if (entry.who != nullptr && !entry.who->token_id.empty()) line["token"] = entry.who->token_id;
  if (!entry.object.empty()) line["object"] = entry.object.substr(0, kObjectBytesMax);
  if (!entry.why.empty()) line["why"] = entry.why.substr(0, kWhyBytesMax);
  if (!entry.code.empty()) line["code"] = entry.code;
  if (left_out != 0) line["left_out"] = left_out;
  if (lost != 0) line["lost"] = lost;
  std::string text = text_of(line);
  if (text.size() > AuditLog::kLineBytesMax) {
    line.erase("why");
    text = text_of(line);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& path) {
  const auto file = open_file(path);
  if (!file) return std::unexpected(file.error());
  return std::unique_ptr<AuditLog>(new AuditLog(path, *file));
}

AuditLog::AuditLog(std::string path, int file) : path_(std::move(path)), file_(file), torn_(is_torn(path_)) {}

AuditLog::~AuditLog() {
  ::close(file_);
}

void AuditLog::write(const AuditEntry& entry, std::int64_t now_s) {
  const std::lock_guard lock(mutex_);
  if (now_s != second_) {
    second_ = now_s;
    strangers_ = 0;
  }
  if (entry.who == nullptr && ++strangers_ > kStrangersPerSecondMax) {
    ++left_out_;
    return;
  }
  if (append(line_of(entry, now_s, left_out_, lost_))) {
    left_out_ = 0;
    lost_ = 0;
    return;
  }
  if (++lost_ == 1) spdlog::error("the audit log {} takes no line: {}", path_, std::strerror(errno));
}

/// One call writes a whole line: O_APPEND keeps lines of several writers apart. A line follows no piece of another.
bool AuditLog::append(const std::string& line) {
  if (torn_ && ::write(file_, "\n", 1) != 1) return false;
  torn_ = false;
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return true;
  torn_ = written > 0;
  if (torn_) errno = ENOSPC;
  return false;
}

Status AuditLog::reopen() {
  const auto file = open_file(path_);
  if (!file) return std::unexpected(file.error());
  const std::lock_guard lock(mutex_);
  ::close(std::exchange(file_, *file));
  torn_ = is_torn(path_);
  return {};
}

}  // namespace tributary::manager
