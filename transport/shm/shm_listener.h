#pragma once
// Accepts connections through shared memory. The number of connections that do not have the memory yet is bounded;
// above the bound the oldest of them is closed.
#include <list>

#include "transport/shm/shm_connection.h"

namespace tributary::transport {

class ShmAcceptor final : public Pollable {
 public:
  /// `host` is the peer's address of accepted connections. Over TCP, a caller on the same host has the address that it
  /// calls; so it has that address here, too.
  ShmAcceptor(const std::shared_ptr<SocketCore>& core, std::shared_ptr<ShmPart> part, OwnedDescriptor socket,
              std::string host, Acceptor& acceptor);
  /// Returns 0, or errno.
  [[nodiscard]] int start();
  void close();
  void mark(std::uint32_t events) override;
  void turn() override;
  void on_deadline() override;
  void shut_down() override { close(); }

  // ---- Calls of connections that are being opened
  void greeted(ShmConnection& connection);
  void forget(const ShmConnection& connection);

 private:
  void take(OwnedDescriptor socket);

  std::weak_ptr<SocketCore> shared_core_;  // shared with the channels that it makes; weak, or the core would own itself
  SocketCore& core_;
  std::shared_ptr<ShmPart> part_;
  PolledSocket socket_;
  std::string host_;
  Acceptor* acceptor_;
  std::list<std::shared_ptr<ShmConnection>> greeting_;  // the oldest first
  bool paused_ = false;
};

class ShmListener final : public Listener {
 public:
  ShmListener(std::shared_ptr<SocketCore> core, std::shared_ptr<ShmAcceptor> acceptor, Endpoint local)
      : core_(std::move(core)), acceptor_(std::move(acceptor)), local_(std::move(local)) {}
  ~ShmListener() override { acceptor_->close(); }
  ShmListener(const ShmListener&) = delete;
  ShmListener& operator=(const ShmListener&) = delete;
  Endpoint local() const override { return local_; }

 private:
  std::shared_ptr<SocketCore> core_;
  std::shared_ptr<ShmAcceptor> acceptor_;
  Endpoint local_;
};

/// Listens at a name. Returns nullptr with errno, such as EADDRINUSE.
[[nodiscard]] std::shared_ptr<ShmAcceptor> listen_at(const std::string& name, const std::shared_ptr<SocketCore>& core,
                                                     const std::shared_ptr<ShmPart>& part, const std::string& host,
                                                     Acceptor& acceptor);

}  // namespace tributary::transport
