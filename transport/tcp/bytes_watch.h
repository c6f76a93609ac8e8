#pragma once
// Finds bytes that the system has taken from a connection and keeps, although none of them are under way.
//
// If a queue of this host drops bytes, Linux keeps them as unsent, and tries again at the next acknowledgement. If no
// byte was under way before these bytes, no acknowledgement comes, and Linux waits for 200 ms and more
// (tcp_write_xmit() and tcp_check_probe_timer() in net/ipv4). All ranks would wait as long for the last segment of an
// operation. So a connection looks a little after it has written, and pushes such bytes. A look costs two system calls,
// at most every 5 ms; an idle connection does not look.
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "tributary/transport/channel.h"

namespace tributary::transport {

class BytesWatch {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(5);

  /// Notes that the system has taken bytes. Returns true if the caller must arrange a look, after kFirst.
  [[nodiscard]] bool begin() noexcept {
    if (std::exchange(looks_, true)) return false;
    after_ = kFirst;
    return true;
  }
  /// Looks, and pushes bytes that stay. Counts each push. Returns the time until the next look; nothing: the system has
  /// sent all bytes.
  [[nodiscard]] std::optional<Duration> look(int socket, std::uint64_t& pushes) noexcept;

 private:
  bool looks_ = false;  // a look is arranged
  Duration after_ = kFirst;
};

}  // namespace tributary::transport
