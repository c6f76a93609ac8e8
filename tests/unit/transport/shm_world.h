#pragma once
// A world on memory that two transports of this process share, as two processes would share it.
#include "tests/unit/transport/world.h"
#include "tributary/transport/shm.h"

namespace tributary::transport::test {

class ShmWorld final : public World {
 public:
  explicit ShmWorld(const ShmSettings& settings) : server_(settings), client_(settings) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }
  Endpoint server_address(std::uint16_t port) override { return {"127.0.0.1", port}; }
  Endpoint nowhere() override {
    class Nobody : public Acceptor {
      ChannelHandler* on_accept(std::unique_ptr<Channel>) override { return nullptr; }
    } nobody;
    return server().listen({"127.0.0.1", 0}, nobody).value()->local();  // its address is free again at
                                                                        // once
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
  ShmTransport server_;
  ShmTransport client_;
};

}  // namespace tributary::transport::test
