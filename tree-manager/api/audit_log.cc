#include "tree-manager/api/audit_log.h"

#include <fcntl.h>
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

Result<int> open_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file >= 0) return file;
  return fail(Errc::bad_config, "the audit log " + path + " cannot be opened: " + std::strerror(errno));
}

/// The most bytes of a text: a character becomes at most six in JSON, and a line must stay below kLineBytesMax.
std::string line_of(const AuditEntry& entry, std::int64_t now_s, std::uint64_t left_out) {
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
  if (!entry.why.empty()) line["why"] = entry.why.substr(0, kWhyBytesMax);
  if (!entry.code.empty()) line["code"] = entry.code;
  if (left_out != 0) line["left_out"] = left_out;
  std::string text = line.dump(-1, ' ', true, json::error_handler_t::replace);
  text += '\n';
  return text;
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& path) {
  const auto file = open_file(path);
  if (!file) return std::unexpected(file.error());
  return std::unique_ptr<AuditLog>(new AuditLog(path, *file));
}

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
  const std::string line = line_of(entry, now_s, left_out_);
  // One call writes a whole line: O_APPEND keeps lines of several writers apart.
  if (::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
    left_out_ = 0;
    complained_ = false;
    return;
  }
  if (!std::exchange(complained_, true))
    spdlog::error("the audit log {} takes no line: {}", path_, std::strerror(errno));
}

Status AuditLog::reopen() {
  const auto file = open_file(path_);
  if (!file) return std::unexpected(file.error());
  const std::lock_guard lock(mutex_);
  ::close(std::exchange(file_, *file));
  return {};
}

}  // namespace tributary::manager
