#pragma once
// TCP, and shared memory to processes of this host: one transport, one poll(), one wait.
//
// A listener also listens on a Unix socket that is named after its address and port, in the network namespace where it
// listens. A connect() to an address of this host tries that name first. The channel opens over TCP, without an error,
// if no process listens at the name, if the listener has another user or another version, or if memory is short.
#include <cstdint>
#include <memory>

#include "tributary/transport/channel.h"
#include "tributary/transport/shm.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport {

struct NearSettings {
  TcpSettings tcp;            // busy_poll and spin_max are for both kinds of channels
  ShmSettings shm;            // connections_max counts only connections through shared memory
  bool shared_memory = true;  // false: all channels are TCP
};

/// An open channel that was taken out of one NearTransport for another. Its destructor closes the connection.
class HandedOver {
 public:
  virtual ~HandedOver() = default;
};

class NearTransport final : public Transport, public MemoryLender {
 public:
  explicit NearTransport(const NearSettings& settings = {});
  /// The rules of ~TcpTransport() hold here, too.
  ~NearTransport() override;
  NearTransport(const NearTransport&) = delete;
  NearTransport& operator=(const NearTransport&) = delete;

  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;
  /// Returns nullptr if shared memory is off.
  [[nodiscard]] std::unique_ptr<KeptMemory> lend(const std::byte* address, SharedRange range) override;

  /// The same as TcpTransport::release() and adopt(), for channels over TCP and through shared memory. `with_frames`:
  /// the channel takes along frames that have come over TCP and that no handler has taken. Without it, release() fails
  /// while there are such frames.
  [[nodiscard]] Result<std::unique_ptr<HandedOver>> release(Channel& channel, bool with_frames = false);
  [[nodiscard]] std::unique_ptr<Channel> adopt(std::unique_ptr<HandedOver> channel, ChannelHandler& handler);

  [[nodiscard]] TcpStatistics tcp_statistics() const;
  [[nodiscard]] ShmStatistics shm_statistics() const;

 private:
  std::shared_ptr<TcpCore> core_;
  TcpTransport tcp_;
  std::shared_ptr<ShmPart> shm_;  // nullptr: all channels are TCP
};

}  // namespace tributary::transport
