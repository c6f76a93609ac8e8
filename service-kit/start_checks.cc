#include "service-kit/start_checks.h"

#include <netdb.h>
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

/// Tries to bind a socket to this address with a free port, and returns errno.
int bind_error(const addrinfo& at) {
  const int one = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (one < 0) return errno;
  const int error = bind(one, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  close(one);
  return error;
}

}  // namespace

Status check_listen(const std::string& key, const Endpoint& listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(listen.host.c_str(), "0", &hints, &list);
  if (code != 0) return refused(key, to_string(listen), std::string("the host is not known: ") + gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found.get(); at != nullptr && error != 0; at = at->ai_next) error = bind_error(*at);
  if (error == 0) return {};
  return refused(key, to_string(listen), std::string("no process can listen there: ") + std::strerror(error));
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
