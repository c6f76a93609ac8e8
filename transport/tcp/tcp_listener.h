#pragma once
// Accepting: a bounded number in each turn, and a pause instead of a spin when the process has no descriptor left.
#include <boost/asio/steady_timer.hpp>

#include "tcp/tcp_connection.h"

namespace tributary::transport {

class TcpAcceptor final : public Pollable, public std::enable_shared_from_this<TcpAcceptor> {
 public:
  TcpAcceptor(std::shared_ptr<TcpCore> core, int socket, Acceptor& acceptor);
  void start();
  void close();
  void turn() override;
  void shut_down() override { close(); }

 private:
  void wait();
  void pause();
  void take(int socket);

  std::weak_ptr<TcpCore> shared_core_;  // for the channels it makes; not owned, or the core would own itself
  TcpCore& core_;
  Descriptor descriptor_;
  asio::steady_timer pause_;
  Acceptor* acceptor_;
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
