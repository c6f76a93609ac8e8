#pragma once
// Accepts connections, a bounded number in each turn, and pauses when the process has no descriptor left.
#include "transport/tcp/tcp_connection.h"

namespace tributary::transport {

class TcpAcceptor final : public Pollable {
 public:
  TcpAcceptor(std::shared_ptr<TcpCore> core, int socket, Acceptor& acceptor);
  /// Returns 0 or errno.
  [[nodiscard]] int start();
  void close();
  void mark(std::uint32_t events) override;
  void turn() override;
  void on_deadline() override;
  void shut_down() override { close(); }

 private:
  void pause();
  void take(int socket);

  std::weak_ptr<TcpCore> shared_core_;  // shared with the channels that it makes; weak, or the core would own itself
  TcpCore& core_;
  PolledSocket socket_;
  Acceptor* acceptor_;
  bool paused_ = false;
};

class TcpListener final : public Listener {
 public:
  TcpListener(std::shared_ptr<TcpCore> core, std::shared_ptr<TcpAcceptor> acceptor, Endpoint local)
      : core_(std::move(core)), acceptor_(std::move(acceptor)), local_(std::move(local)) {}
  ~TcpListener() override { acceptor_->close(); }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  Endpoint local() const override { return local_; }

 private:
  std::shared_ptr<TcpCore> core_;
  std::shared_ptr<TcpAcceptor> acceptor_;
  Endpoint local_;
};

}  // namespace tributary::transport
