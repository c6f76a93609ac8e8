// Two transports of one host. Both sides, only one side, or neither side can use shared memory.
#include "tributary/transport/near.h"

#include "tests/unit/transport/world.h"

namespace tributary::transport::test {
namespace {

class NearWorld final : public World {
 public:
  NearWorld(std::string host, bool server_shares, bool client_shares)
      : host_(std::move(host)), server_(settings(server_shares)), client_(settings(client_shares)) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }
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

 private:
  static NearSettings settings(bool shares) {
    return {.tcp = {.frames_queued_max = kFramesQueuedMax},
            .shm = {.frames_queued_max = kFramesQueuedMax},
            .shared_memory = shares};
  }
  std::string host_;
  NearTransport server_;
  NearTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](const char* host, bool server_shares, bool client_shares) {
    return [=] { return std::make_unique<NearWorld>(host, server_shares, client_shares); };
  };
  return {{"shared_memory", world("127.0.0.1", true, true)},
          {"shared_memory_by_ipv6", world("::1", true, true)},
          {"only_the_server_shares", world("127.0.0.1", true, false)},
          {"only_the_client_shares", world("127.0.0.1", false, true)}};
}

}  // namespace tributary::transport::test
