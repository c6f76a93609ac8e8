#include "service-kit/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "service-kit/descriptor_handle.h"

namespace tributary::service {
namespace {

std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace

void notify_service_manager(std::string_view message) noexcept {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = path == nullptr ? 0 : std::strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  DescriptorHandle socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  (void)::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), bytes);
}

std::optional<std::chrono::microseconds> watchdog_period() {
  const auto period = number_from_environment("WATCHDOG_USEC");
  if (!period || *period == 0) return std::nullopt;
  const auto process = number_from_environment("WATCHDOG_PID");
  if (process && *process != static_cast<std::uint64_t>(::getpid())) return std::nullopt;
  return std::chrono::microseconds(*period);
}

}  // namespace tributary::service
