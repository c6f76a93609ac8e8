#include "client/cli/free_port/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <string>

namespace tributary::cli {
namespace {

constexpr std::uint16_t kPortMin = 15000;
constexpr std::uint16_t kPortMax = 32000;  // Linux uses 32768 to 60999 for outgoing connections
constexpr int kPortAttempts = 200;

bool can_listen(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool good = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return good;
}

}  // namespace

Result<std::uint16_t> free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(kPortMin, kPortMax);
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    const auto port = static_cast<std::uint16_t>(ports(random));
    if (can_listen(port)) return port;
  }
  return fail(Errc::exhausted,
              "there is no free TCP port between " + std::to_string(kPortMin) + " and " + std::to_string(kPortMax));
}

}  // namespace tributary::cli
