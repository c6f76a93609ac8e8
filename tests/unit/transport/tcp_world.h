#pragma once
// A world on real sockets of this machine, and the same with faults on both sides.
#include "tests/unit/transport/real_world.h"
#include "tributary/transport/fault.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport::test {

class TcpWorld : public RealWorld {
 public:
  TcpWorld(std::string host, const TcpSettings& settings)
      : RealWorld(std::move(host)), tcp_server_(settings), tcp_client_(settings) {}
  Transport& server() override { return tcp_server_; }
  Transport& client() override { return tcp_client_; }

 protected:
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
