#pragma once
// The common part of all worlds whose time is the machine's: it polls both ends until the test's condition holds.
#include <chrono>

#include "tests/unit/transport/world.h"

namespace tributary::transport::test {

class RealWorld : public World {
 public:
  Endpoint server_address(std::uint16_t port) override { return {host_, port}; }
  Endpoint nowhere() override { return closed_port(server()); }
  bool run_until(const std::function<bool()>& done) override {
    const TimePoint limit = Clock::now() + limit_;
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server().poll({}) + client().poll({}) == 0) server().poll(std::chrono::microseconds(100));
    }
    return true;
  }
  void settle() override {
    for (const TimePoint end = Clock::now() + settling_; Clock::now() < end;) {
      server().poll(std::chrono::milliseconds(1));
      client().poll(std::chrono::milliseconds(1));
    }
  }

 protected:
  explicit RealWorld(std::string host, Duration limit = std::chrono::seconds(30),
                     Duration settling = std::chrono::milliseconds(20))
      : host_(std::move(host)), limit_(limit), settling_(settling) {}

  [[nodiscard]] const std::string& host() const { return host_; }

  /// Returns an address of the host at which `transport` listened, and no longer listens.
  [[nodiscard]] Endpoint closed_port(Transport& transport) const {
    class Nobody : public Acceptor {
      ChannelHandler* on_accept(std::unique_ptr<Channel>) override { return nullptr; }
    } nobody;
    return transport.listen({host_, 0}, nobody).value()->local();
  }

 private:
  std::string host_;
  Duration limit_;
  Duration settling_;
};

}  // namespace tributary::transport::test
