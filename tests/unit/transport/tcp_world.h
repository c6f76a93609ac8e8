#pragma once
// A world on real sockets of this machine, and the same with faults on both sides.
#include "tests/unit/transport/world.h"
#include "tributary/transport/fault.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport::test {

class TcpWorld : public World {
 public:
  TcpWorld(std::string host, const TcpSettings& settings)
      : host_(std::move(host)), tcp_server_(settings), tcp_client_(settings) {}
  Transport& server() override { return tcp_server_; }
  Transport& client() override { return tcp_client_; }
  Endpoint server_address(std::uint16_t port) override { return {host_, port}; }
  Endpoint nowhere() override {
    class Nobody : public Acceptor {
      ChannelHandler* on_accept(std::unique_ptr<Channel>) override { return nullptr; }
    } nobody;
    return server().listen({host_, 0}, nobody).value()->local();  // its address is free again at once
  }
  bool run_until(const std::function<bool()>& done) override {
    const TimePoint limit = Clock::now() + std::chrono::seconds(30);
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server().poll({}) + client().poll({}) == 0) server().poll(std::chrono::microseconds(100));
    }
    return true;
  }
  void settle() override {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(20); Clock::now() < end;) {
      server().poll(std::chrono::milliseconds(1));
      client().poll(std::chrono::milliseconds(1));
    }
  }

 protected:
  std::string host_;
  TcpTransport tcp_server_;
  TcpTransport tcp_client_;
};

class FaultyTcpWorld final : public TcpWorld {
 public:
  FaultyTcpWorld(const TcpSettings& settings, const FaultPlan& plan)
      : TcpWorld("127.0.0.1", settings), server_(tcp_server_, plan), client_(tcp_client_, plan) {}
  FaultyTransport& server() override { return server_; }
  FaultyTransport& client() override { return client_; }

 private:
  FaultyTransport server_;
  FaultyTransport client_;
};

}  // namespace tributary::transport::test
