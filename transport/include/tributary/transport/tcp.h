#pragma once
// Frames over TCP, IPv4 and IPv6. Gathering calls write payloads directly from the sender's memory, and receiving calls
// read them directly to the handler's place. A call that receives the end of a payload reads the next header, too.
// send() makes no system call: all frames that the caller queues between two turns of poll() go out together.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tributary/transport/channel.h"
#include "tributary/transport/sealed_socket.h"

namespace tributary::transport {

class TcpConnection;
class TcpCore;

struct TcpSettings {
  std::uint32_t send_buffer_bytes = 0;     // send buffer of each socket; 0: the kernel tunes it
  std::uint32_t receive_buffer_bytes = 0;  // receive buffer of each socket; 0: the kernel tunes it
  std::uint32_t frames_queued_max = 1024;  // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t connections_max =
      16384;  // most open connections; a further connection is closed at once, and its peer falls back
  std::size_t poll_bytes_max = 1U << 20;  // bytes of a channel and direction in one turn, so that no channel starves
  Duration user_timeout =
      std::chrono::seconds(20);  // a peer that acknowledges no bytes for this long is gone; 0: the kernel's limit
  Duration keepalive = std::chrono::seconds(10);      // silence after which a peer is probed three times, at
                                                      // intervals of a third of it; 0: never
  Duration busy_poll{};                               // poll(wait) spins for this time before it sleeps
  Duration spin_max = std::chrono::microseconds(20);  // without busy_poll: poll(wait) spins for this time and yields
                                                      // to other threads, if most waits end within it; 0: never
  std::uint8_t traffic_class = 0;    // DSCP (upper six bits) and ECN of the connections' packets; 0: the system's value
  std::string bind_address;          // numeric source of connect(), also for listen() without a host; empty: any
  std::shared_ptr<LinkKeys> keys{};  // secrets that seal the connections; nullptr: no connection is sealed
};

/// Counts since the start. Read on the transport's thread.
struct TcpStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // bytes of frames, headers included
  std::uint64_t write_calls = 0, read_calls = 0;
  std::uint64_t pushes = 0;  // number of times that bytes were pushed (transport/tcp/bytes_watch.h)
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;          // connections refused because of connections_max
  std::uint64_t accept_pauses = 0;         // pauses of accepting because no descriptor or memory was left
  std::array<std::uint64_t, 9> rejects{};  // channels closed for a bad header, by FrameReject
  std::uint64_t seals_refused = 0;         // accepted channels closed because their security did not suffice
  std::uint64_t records_forged = 0;        // sealed channels closed for a record that was changed or senseless
  std::size_t connections = 0;             // connections open now
};

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TcpSettings& settings = {});
  /// Shares `core` with connections of another kind.
  explicit TcpTransport(std::shared_ptr<TcpCore> core);
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user may destroy
  /// them later. May wait for a name look-up that is under way.
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  /// An empty host, and "::", mean all addresses of both families. A name is looked up within this call.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// A name is looked up on another thread; its addresses are tried in turn.
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  /// Takes the socket out of an open channel of this transport, for adopt() on another transport's thread. May be
  /// called inside the channel's callbacks. Closes the channel without a callback. Errc::retry: a frame is partly read
  /// or written, or frames are queued; the channel goes on, and release() may be tried again.
  [[nodiscard]] Result<int> release(Channel& channel);
  /// Takes the socket out of a channel that may be sealed, together with the seal.
  [[nodiscard]] Result<ReleasedSocket> release_with_seal(Channel& channel);
  /// Makes a channel of a socket from release(), and owns the socket from here on.
  [[nodiscard]] std::unique_ptr<Channel> adopt(int socket, ChannelHandler& handler);

  /// This side's address of a channel of this transport; an empty host if the channel has no address, or is closed.
  [[nodiscard]] Endpoint local(Channel& channel) const;

  [[nodiscard]] TcpStatistics statistics() const;

 private:
  [[nodiscard]] TcpConnection* own(Channel& channel) const;

  std::shared_ptr<TcpCore> core_;
};

/// The numeric address of a network interface, IPv4 rather than IPv6; Errc::bad_config if no interface has that name,
/// or the interface has no address.
[[nodiscard]] Result<std::string> address_of_interface(std::string_view name);

}  // namespace tributary::transport
