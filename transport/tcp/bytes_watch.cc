#include "transport/tcp/bytes_watch.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace tributary::transport {
namespace {

constexpr Duration kLast = std::chrono::milliseconds(100);  // time between two looks, if the peer takes nothing

}  // namespace

std::optional<Duration> BytesWatch::look(int socket, std::uint64_t& pushes) noexcept {
  int kept = 0, unsent = 0;
  const bool known = ::ioctl(socket, SIOCOUTQ, &kept) == 0 && ::ioctl(socket, SIOCOUTQNSD, &unsent) == 0;
  if (!known || unsent == 0) {
    looks_ = false;
    return std::nullopt;
  }
  if (kept > unsent) return after_ = kFirst;  // an acknowledgement will come
  ++pushes;
  const int on = 1;  // setting this option also pushes, even if it is set already
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return after_ = std::min(2 * after_, kLast);
}

}  // namespace tributary::transport
