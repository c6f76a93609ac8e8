#include "service-kit/start_checks.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "service-kit/mistake.h"

namespace tributary::service {
namespace {

std::unexpected<Error> refused(const std::string& key, const std::string& value, const std::string& why) {
  return refuse({.key = key, .value = value, .why = why});
}

/// Tries to bind a socket to this address, and returns errno. A stream's port whose connections have ended is free, as
/// it is for the daemons.
int bind_error(const addrinfo& at) {
  const int one = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, 0);
  if (one < 0) return errno;
  const int yes = 1;
  if (at.ai_socktype == SOCK_STREAM) static_cast<void>(setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
  const int error = bind(one, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  close(one);
  return error;
}

/// Tries to bind a socket to an address of this host, and returns errno. The error says that the host is not known.
Result<int> bind_error(const std::string& host, std::uint16_t port, PortKind kind) {
  addrinfo hints{};
  hints.ai_socktype = kind == PortKind::stream ? SOCK_STREAM : SOCK_DGRAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) return fail(Errc::bad_config, std::string("the host is not known: ") + gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found.get(); at != nullptr && error != 0; at = at->ai_next) error = bind_error(*at);
  return error;
}

std::unexpected<Error> not_now(const std::string& key, const std::string& value, const std::string& why) {
  return fail(Errc::io, to_string(Mistake{.key = key, .value = value, .why = why}));
}

}  // namespace

Status check_listen(const std::string& key, const Endpoint& listen) {
  const auto error = bind_error(listen.host, 0, PortKind::stream);
  if (!error) return refused(key, to_string(listen), error.error().message);
  if (*error == 0) return {};
  return refused(key, to_string(listen), std::string("no process can listen there: ") + std::strerror(*error));
}

Status check_port(const std::string& key, const Endpoint& listen, PortKind kind) {
  const auto error = bind_error(listen.host, listen.port, kind);
  if (!error) return refused(key, to_string(listen), error.error().message);
  if (*error == 0) return {};
  return not_now(key, to_string(listen),
                 *error == EADDRINUSE ? "another process listens there: stop it, or choose another port"
                                      : std::string("this process cannot listen there: ") + std::strerror(*error));
}

Status check_lock(const std::string& key, const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  if (!held) return {};
  return not_now(key, path, "another process holds its lock: stop it, or choose another place");
}

Status check_writable_file(const std::string& key, const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    if (std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), W_OK) == 0) return {};
    return refused(key, path, "it is no file that this user can write");
  }
  const std::string folder = std::filesystem::absolute(path, ignored).parent_path().string();
  if (std::filesystem::is_directory(folder, ignored) && access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return refused(key, path, "its folder is not there, or this user cannot write there");
}

Status check_folder(const std::string& key, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    if (std::filesystem::is_directory(path, ignored) && access(path.c_str(), W_OK | X_OK) == 0) return {};
    return refused(key, path, "it is no folder that this user can write");
  }
  std::filesystem::path above = std::filesystem::absolute(path, ignored);
  while (above.has_relative_path() && !std::filesystem::exists(above, ignored)) above = above.parent_path();
  if (std::filesystem::is_directory(above, ignored) && access(above.c_str(), W_OK | X_OK) == 0) return {};
  return refused(key, path, "it is not there, and this user cannot make it below " + above.string());
}

}  // namespace tributary::service
