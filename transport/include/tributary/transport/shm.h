#pragma once
// Frames between two processes of one host, through memory that they share. Each connection has its own shared memory,
// with one ring for each direction, and a Unix socket. The socket wakes a side that sleeps, and shows it when the other
// side has ended.
//
// No side trusts bytes that the other side writes to the memory: a process that writes garbage there, or dies in the
// middle of a word, closes its own connection and harms no other one. Only processes of the same user, or of root, get
// a connection. Neither the memory nor the socket has a name in a file system, so a dead process leaves nothing behind.
#include <cstdint>
#include <memory>

#include "tributary/transport/channel.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

class SocketCore;
class ShmPart;

struct ShmSettings {
  std::uint32_t ring_bytes = 512U << 10;     // bytes of one direction of a connection; a power of two, 4 KiB to 64 MiB
  std::uint32_t frames_queued_max = 1024;    // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t connections_max = 16384;     // most open connections; a further connection is closed at once
  std::size_t poll_bytes_max = 1U << 20;     // bytes of a channel and direction in one turn of poll()
  bool huge_pages = true;                    // uses huge pages, where the system has set some aside
  std::uint64_t map_bytes_max = 8ULL << 30;  // bytes of each peer's memory mapped for reading; 0: copies payloads
  Duration busy_poll{};                      // as in TcpSettings
  Duration spin_max = std::chrono::microseconds(20);  // as in TcpSettings
};

/// Counts since the start. Read on the transport's thread.
struct ShmStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // bytes of frames, headers included
  std::uint64_t frames_in_place = 0;                 // received frames whose payloads were not copied
  std::uint64_t frames_named = 0;                    // sent frames whose payloads stay where they are
  std::uint64_t regions_mapped = 0;                  // ranges of other processes' memory, since the start
  std::uint64_t regions_refused = 0;                 // ranges that were refused: not sealed, too many, or too large
  std::uint64_t bells = 0;                           // times that a sleeping peer was woken, each by a system call
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;    // connections refused because of connections_max, or of a lack of memory
  std::uint64_t refused_user = 0;    // connections of another user's processes
  std::uint64_t greetings_lost = 0;  // connections whose other side ended, was too slow, or had another version
  std::uint64_t corrupt = 0;         // connections closed because of garbage from the other side
  std::size_t connections = 0;       // connections open now
};

/// Interface of a transport whose peers on this host may read this process's memory without a copy.
class MemoryLender {
 public:
  virtual ~MemoryLender() = default;
  /// While the returned object lives, payloads of 4 KiB and more that lie in the range, which begins at `address`, do
  /// not go through the ring: the other side reads them there, once it has mapped the range. When the object ends, no
  /// payload in the range may be under way. Any thread may call it.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> lend(const std::byte* address, SharedRange range) = 0;
};

class ShmTransport final : public Transport, public MemoryLender {
 public:
  explicit ShmTransport(const ShmSettings& settings = {});
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user destroys them.
  ~ShmTransport() override;
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  /// Listens on a Unix socket whose name contains `at.host` as text, so connect() must get `host` in the same spelling.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;
  [[nodiscard]] std::unique_ptr<KeptMemory> lend(const std::byte* address, SharedRange range) override;

  [[nodiscard]] ShmStatistics statistics() const;

 private:
  std::shared_ptr<SocketCore> core_;
  std::shared_ptr<ShmPart> part_;
};

}  // namespace tributary::transport
