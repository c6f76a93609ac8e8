#pragma once
// NearTransport (TCP and shared memory), where connections that carry much data run on threads of their own.
//
// One thread moves about 3 GB/s over TCP, because the kernel copies every byte. On faster links a process needs several
// threads to read and write, but the protocol should stay on one thread. So an I/O thread does the slow work: it calls
// the system, and puts payloads into the places that the handler has announced (Channel::expect). Headers, handlers and
// all state stay on the thread that calls poll(). A frame crosses two rings without locks, which takes about a
// microsecond more than on one thread; so connections that carry little data stay on the user's thread.
#include <cstdint>
#include <memory>
#include <string>

#include "tributary/transport/near.h"

namespace tributary::transport {

namespace io_threads {
class Core;
}

/// An interface that a transport with I/O threads implements besides Transport.
class HasIoThreads {
 public:
  virtual ~HasIoThreads() = default;
  /// The transport for connections that carry much data: its connect() makes channels on the I/O threads, in turn. Its
  /// listen() listens on the user's thread. Do not call its poll(). It lives as long as the transport.
  [[nodiscard]] virtual Transport& io_way() noexcept = 0;
  /// Moves an open channel, which listen() has made, to an I/O thread; `handler` gets its callbacks from now on. May be
  /// called inside the channel's own callbacks. If the channel cannot be moved now, it is returned as it is.
  [[nodiscard]] virtual std::unique_ptr<Channel> to_io_thread(std::unique_ptr<Channel> channel,
                                                              ChannelHandler& handler) = 0;
};

/// The transport for connections that carry much data: the I/O threads, or `transport` itself if it has none.
[[nodiscard]] inline Transport& io_way(Transport& transport) noexcept {
  auto* const threads = dynamic_cast<HasIoThreads*>(&transport);
  return threads != nullptr ? threads->io_way() : transport;
}

inline constexpr std::uint32_t kIoThreadsMax = 32;

class IoThreadsTransport final : public Transport, public MemoryLender, public HasIoThreads {
 public:
  /// `threads`: 1 to kIoThreadsMax threads, beside the user's. They start with the first connection that needs them.
  IoThreadsTransport(const NearSettings& settings, std::uint32_t threads);
  /// The rules of ~TcpTransport() hold here, too.
  ~IoThreadsTransport() override;
  IoThreadsTransport(const IoThreadsTransport&) = delete;
  IoThreadsTransport& operator=(const IoThreadsTransport&) = delete;

  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// Makes a channel on the user's thread.
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;
  [[nodiscard]] std::unique_ptr<KeptMemory> lend(const std::byte* address, SharedRange range) override;
  [[nodiscard]] Transport& io_way() noexcept override;
  [[nodiscard]] std::unique_ptr<Channel> to_io_thread(std::unique_ptr<Channel> channel,
                                                      ChannelHandler& handler) override;

 private:
  class IoWay;
  NearTransport own_;
  std::shared_ptr<io_threads::Core> core_;
  std::unique_ptr<IoWay> io_way_;
  std::vector<std::unique_ptr<Channel>> moved_;  // closed channels, which may be in a callback until the next poll()
};

}  // namespace tributary::transport
