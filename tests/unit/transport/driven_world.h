#pragma once
// A world whose transports are driven from outside, in the way in which one transport drives another. The world polls
// them only when they have said that they have work, and they never wait.
#include <poll.h>

#include "tests/unit/transport/tcp_world.h"
#include "transport/socket/socket_core.h"
#include "transport/tcp/tcp_core.h"

namespace tributary::transport::test {

class DrivenTransport final : public Transport {
 public:
  explicit DrivenTransport(const TcpSettings& settings)
      : core_(std::make_shared<TcpCore>(settings)), tcp_(core_), descriptor_(core_->be_driven()) {}
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    return tcp_.listen(at, acceptor);
  }
  std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    return tcp_.connect(to, handler, limit);
  }
  std::size_t poll(Duration wait) override {
    if (!core_->has_work() && core_->first_deadline() > Clock::now()) {
      pollfd told{.fd = descriptor_, .events = POLLIN, .revents = 0};
      const auto limit = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
      if (::poll(&told, 1, static_cast<int>(limit)) <= 0 && core_->first_deadline() > Clock::now()) return 0;
    }
    return tcp_.poll(Duration::zero());
  }
  TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override { tcp_.post(std::move(call)); }

 private:
  std::shared_ptr<TcpCore> core_;
  TcpTransport tcp_;
  const int descriptor_;
};

class DrivenWorld final : public TcpWorld {
 public:
  explicit DrivenWorld(const TcpSettings& settings)
      : TcpWorld("127.0.0.1", settings), driven_server_(settings), driven_client_(settings) {}
  Transport& server() override { return driven_server_; }
  Transport& client() override { return driven_client_; }

 private:
  DrivenTransport driven_server_;
  DrivenTransport driven_client_;
};

}  // namespace tributary::transport::test
