#pragma once
// A world on the RDMA devices of this machine: the server at the first address in RDMA_HOSTS, the client at the last.
#include <cstdlib>
#include <sstream>

#include "tests/unit/transport/world.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport::test {

inline std::vector<std::string> rdma_hosts() {
  const char* const named = std::getenv("RDMA_HOSTS");
  std::istringstream words(named == nullptr ? "" : named);
  std::vector<std::string> hosts;
  for (std::string host; words >> host;) hosts.push_back(host);
  return hosts;
}

class VerbsWorld : public World {
 public:
  explicit VerbsWorld(const VerbsSettings& settings)
      : host_(rdma_hosts().at(0)), server_(make(settings, host_)), client_(make(settings, rdma_hosts().back())) {}
  Transport& server() override { return *server_; }
  Transport& client() override { return *client_; }
  Endpoint server_address(std::uint16_t port) override { return {host_, port}; }
  Endpoint nowhere() override {
    class Nobody : public Acceptor {
      ChannelHandler* on_accept(std::unique_ptr<Channel>) override { return nullptr; }
    } nobody;
    return server().listen({host_, 0}, nobody).value()->local();  // its address is free again at once
  }
  bool run_until(const std::function<bool()>& done) override {
    const TimePoint limit = Clock::now() + std::chrono::minutes(4);  // long enough for an emulated machine on a busy
                                                                     // host
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server().poll({}) + client().poll({}) == 0) server().poll(std::chrono::microseconds(100));
    }
    return true;
  }
  void settle() override {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(100); Clock::now() < end;) {
      server().poll(std::chrono::milliseconds(1));
      client().poll(std::chrono::milliseconds(1));
    }
  }

 private:
  static std::unique_ptr<VerbsTransport> make(VerbsSettings settings, const std::string& host) {
    settings.bind_address = host;
    return VerbsTransport::create(settings).value();
  }
  std::string host_;
  std::unique_ptr<VerbsTransport> server_;
  std::unique_ptr<VerbsTransport> client_;
};

}  // namespace tributary::transport::test
