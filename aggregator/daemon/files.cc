#include "aggregator/daemon/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <vector>

#include "service-kit/descriptor_handle.h"
#include "service-kit/settings_file.h"

namespace tributary::aggregator {
namespace {

constexpr std::size_t kTokenBytesMax = 4096;
constexpr std::size_t kIdentityBytesMax = 4096;

std::unexpected<Error> system_error() {
  return fail(Errc::io, std::strerror(errno));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Returns the permission bits of `path`; 0 if there is no such file.
mode_t mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
}

std::string octal(mode_t mode) {
  std::string text = "0000";
  for (std::size_t i = 0; i < 3; ++i) text[3 - i] = static_cast<char>('0' + ((mode >> (3 * i)) & 7U));
  return text;
}

std::string without_line_ends(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

std::unexpected<Error> broken_identity(const std::string& path) {
  return service::refuse({.key = "state_file",
                          .value = path,
                          .why = "it is damaged; remove it, and the aggregator asks its manager for the key again",
                          .allowed = "a file that an aggregator has written"});
}

std::unexpected<Error> open_to_others(const char* key, const std::string& path, mode_t mode, const std::string& danger,
                                      const char* allowed) {
  return service::refuse({.key = key,
                          .value = path,
                          .why = "it has mode " + octal(mode) + ": " + danger + "; run: chmod 600 " + path,
                          .allowed = allowed});
}

}  // namespace

Status write_file(const std::string& path, const std::string& text, mode_t mode) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  bool written = false;
  {
    const service::DescriptorHandle file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    written = file && write_all(file.get(), text) && ::fsync(file.get()) == 0;
  }
  if (written && ::rename(draft.c_str(), path.c_str()) == 0) return {};
  const auto error = system_error();
  ::unlink(draft.c_str());
  return error;
}

Result<std::string> read_token(const std::string& path) {
  if (path.empty()) return std::string{};
  const auto text = service::read_file(path, kTokenBytesMax);
  if (!text) {
    return service::refuse({.key = "token_file",
                            .value = path,
                            .why = "it cannot be read: " + text.error().message +
                                   "; copy it from the manager's state directory (aggregator.token)",
                            .allowed = "the path of a file that this user can read"});
  }
  if (const mode_t mode = mode_of(path); (mode & 037U) != 0)
    return open_to_others("token_file", path, mode, "other users may use the secret", "mode 0600 or 0640");
  std::string token = without_line_ends(*text);
  if (token.empty()) {
    return service::refuse({.key = "token_file",
                            .value = path,
                            .why = "it is empty; copy it from the manager once more",
                            .allowed = "a file with the secret"});
  }
  return token;
}

Result<std::optional<Identity>> read_identity(const std::string& path) {
  const mode_t mode = path.empty() ? 0 : mode_of(path);
  if (path.empty() || (mode == 0 && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT)) return std::nullopt;
  const auto text = service::read_file(path, kIdentityBytesMax);
  if (!text) return service::refuse(service::unreadable("state_file", path, text.error().message));
  if ((mode & 022U) != 0) {
    return open_to_others("state_file", path, mode, "other users may change the key that verifies tokens",
                          "a mode that lets no other user write");
  }
  const std::string lines = without_line_ends(*text);
  const std::size_t space = lines.find(' ');
  if (space == std::string::npos || space == 0 || space > kNameBytesMax) return broken_identity(path);
  // The lines of a state file: the manager's key, then, if any, the manager's and this aggregator's keys for sealed
  // packets.
  std::vector<std::vector<std::byte>> keys;
  for (const auto word : std::views::split(std::string_view(lines).substr(space + 1), ' ')) {
    const auto key = from_base64(std::string_view(word));
    if (!key || key->size() != kPublicKeyBytes) return broken_identity(path);
    keys.push_back(*key);
  }
  if (keys.size() != 1 && keys.size() != 3) return broken_identity(path);
  Identity identity{.name = lines.substr(0, space)};
  std::ranges::copy(keys[0], identity.manager_key.begin());
  if (keys.size() == 1) return identity;
  if ((mode & 077U) != 0)
    return open_to_others("state_file", path, mode, "other users may read the key that seals packets", "mode 0600");
  std::ranges::copy(keys[1], identity.manager_exchange.emplace().begin());
  std::ranges::copy(keys[2], identity.exchange_private.emplace().begin());
  return identity;
}

Status write_identity(const std::string& path, const Identity& identity) {
  if (path.empty()) return {};
  std::string text = identity.name + " " + to_base64(identity.manager_key);
  if (identity.manager_exchange && identity.exchange_private) {
    text += " " + to_base64(*identity.manager_exchange) + " " + to_base64(*identity.exchange_private);
  }
  return write_file(path, text + "\n", 0600);
}

}  // namespace tributary::aggregator
