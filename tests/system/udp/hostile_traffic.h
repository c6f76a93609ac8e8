#pragma once
// A stranger on the network, which attacks the ports of an aggregator with datagrams that it invents or has overheard.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/packet/wire.h"
#include "transport/random/random.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::hostile {

using Datagram = std::vector<std::byte>;

/// A file descriptor that a test owns.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool good() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

enum class Kind : std::uint8_t {
  garbage,         // bytes without a meaning
  wrong_checksum,  // a correct packet with one wrong bit
  guessed_name,    // data for a connection that may exist
  unsealed,        // data in clear for a connection that exists
  foreign_group,   // an open without a cookie, for a group that does not exist
  wrong_seal,      // a sealed open with a wrong authenticator
  guessed_end,     // close and reset for connections that may exist
  replay,          // a packet of a rank, unchanged
  changed,         // a packet of a rank with one bit changed, and with a corrected checksum if it has one
  fragment,        // only the first part of a datagram; this needs raw sockets, and so root
};
inline constexpr std::size_t kKinds = 10;
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

class Stranger {
 public:
  /// The stranger sends to this port of 127.0.0.1, from several addresses and ports.
  Stranger(std::uint16_t port, std::vector<Datagram> seen, std::uint64_t seed);
  /// Returns false if this process cannot make this kind.
  [[nodiscard]] bool can(Kind kind) const noexcept;
  void send(Kind kind);
  /// Returns the next datagram of this kind; an empty one for a fragment.
  [[nodiscard]] Datagram make(Kind kind);

 private:
  void send_fragment();

  const std::uint16_t port_;
  const std::vector<Datagram> seen_;
  transport::Random random_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  Socket raw_;
};

/// Asks the door at `door` for the port of this host that serves a lane of this group; 0: no answer.
[[nodiscard]] std::uint16_t port_behind(std::uint16_t door, std::uint64_t group, std::uint32_t lane);
/// Returns the datagrams that arrive at this port of the loopback device during this time, at most this many; empty
/// without root.
[[nodiscard]] std::vector<Datagram> overheard(std::uint16_t port, std::size_t datagrams_max, int milliseconds);
/// Returns the body of http://127.0.0.1:port/path.
[[nodiscard]] std::string page(std::uint16_t port, const std::string& path);

}  // namespace tributary::hostile
