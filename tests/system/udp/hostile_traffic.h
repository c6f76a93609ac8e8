#pragma once
// Somebody on the network who means no good, at the ports of an aggregator: sends what he can make up or has seen.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "packet/wire.h"
#include "random/random.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::hostile {

using Datagram = std::vector<std::byte>;

/// One of the file descriptors that a test holds.
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
  garbage,         // bytes of no meaning
  wrong_checksum,  // a packet, but for one bit
  guessed_name,    // data for a connection that may be there
  unsealed,        // data in clear for a connection that is there
  foreign_group,   // an open for a group that is none, without a cookie
  wrong_seal,      // a sealed open, whose authenticator is none
  guessed_end,     // close and reset for connections that may be there
  replay,          // what a rank has sent, as it was
  changed,         // the same, but for one bit, its checksum made right again where it has one
  fragment,        // the first part of a datagram, and never the rest. Raw sockets: root alone
};
inline constexpr std::size_t kKinds = 10;
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

class Stranger {
 public:
  /// Sends to this port of 127.0.0.1, from several addresses and ports.
  Stranger(std::uint16_t port, std::vector<Datagram> seen, std::uint64_t seed);
  /// False: this kind cannot be made here.
  [[nodiscard]] bool can(Kind kind) const noexcept;
  void send(Kind kind);
  /// What it would send; nothing for a fragment.
  [[nodiscard]] Datagram make(Kind kind);

 private:
  void send_fragment();

  const std::uint16_t port_;
  const std::vector<Datagram> seen_;
  transport::Random random_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  Socket raw_;
};

/// Which port of this host serves a lane of this group: what the door at `door` answers. 0: no answer.
[[nodiscard]] std::uint16_t port_behind(std::uint16_t door, std::uint64_t group, std::uint32_t lane);
/// Datagrams that come to this port of the loopback device meanwhile, at most so many. Empty without root.
[[nodiscard]] std::vector<Datagram> overheard(std::uint16_t port, std::size_t datagrams_max, int milliseconds);
/// The body of http://127.0.0.1:port/path.
[[nodiscard]] std::string page(std::uint16_t port, const std::string& path);

}  // namespace tributary::hostile
