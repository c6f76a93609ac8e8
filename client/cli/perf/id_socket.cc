#include "client/cli/perf/id_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace tributary::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool wait_for(const Socket& socket, short events, steady_clock::time_point deadline) {
  pollfd one{socket.get(), events, 0};
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return left > 0 && poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30))) > 0;
}

bool write_line(const Socket& socket, const std::string& line) {
  const std::string text = line + "\n";
  return send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace tributary::cli
