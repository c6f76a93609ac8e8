#include "tests/system/chaos/daemon_metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tributary::chaos {

std::string page(std::uint16_t port, const std::string& path) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  std::string answer;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      ::send(connection, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::recv(connection, piece.data(), piece.size(), 0)) > 0;) {
      answer.append(piece.data(), static_cast<std::size_t>(got));
    }
  }
  ::close(connection);
  return answer;
}

std::uint64_t metric(const std::string& page, const std::string& name) {
  std::uint64_t sum = 0;
  const std::string line = "\n" + name;
  for (std::size_t at = page.find(line); at != std::string::npos; at = page.find(line, at + 1)) {
    const char after = page[at + line.size()];
    if (after != ' ' && after != '{') continue;  // a longer name
    const std::size_t end = page.find('\n', at + 1);
    sum += std::strtoull(page.c_str() + page.rfind(' ', end) + 1, nullptr, 10);
  }
  return sum;
}

}  // namespace tributary::chaos
