#include "tributary/transport/tcp.h"
#include "world.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

class TcpWorld : public World {
 public:
  explicit TcpWorld(std::string host, const TcpSettings& settings)
      : host_(std::move(host)), server_(settings), client_(settings) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }
  Endpoint server_address(std::uint16_t port) override { return {host_, port}; }
  Endpoint nowhere() override {
    class Nobody : public Acceptor {
      ChannelHandler* on_accept(std::unique_ptr<Channel>) override { return nullptr; }
    } nobody;
    return server_.listen({host_, 0}, nobody).value()->local();  // which is free again at once
  }
  bool run_until(const std::function<bool()>& done) override {
    const TimePoint limit = Clock::now() + 30s;
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server_.poll(0ns) + client_.poll(0ns) == 0) server_.poll(100us);
    }
    return true;
  }
  void settle() override {
    for (const TimePoint end = Clock::now() + 20ms; Clock::now() < end;) {
      server_.poll(1ms);
      client_.poll(1ms);
    }
  }

 private:
  std::string host_;
  TcpTransport server_;
  TcpTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](const char* host, const TcpSettings& settings) {
    return [host, settings] { return std::make_unique<TcpWorld>(host, settings); };
  };
  const TcpSettings plain{.frames_queued_max = kFramesQueuedMax};
  const TcpSettings small_buffers{
      .send_buffer_bytes = 32768, .receive_buffer_bytes = 32768, .frames_queued_max = kFramesQueuedMax};
  const TcpSettings small_turns{.frames_queued_max = kFramesQueuedMax, .poll_bytes_max = 700};
  return {{"ipv4", world("127.0.0.1", plain)},
          {"ipv6", world("::1", plain)},
          {"small_socket_buffers", world("127.0.0.1", small_buffers)},
          {"small_turns", world("127.0.0.1", small_turns)}};
}

}  // namespace tributary::transport::test
