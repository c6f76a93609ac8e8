// Two transports of one host. Both sides, only one side, or neither side can use shared memory.
#include "tributary/transport/near.h"

#include "tests/unit/transport/real_world.h"

namespace tributary::transport::test {
namespace {

class NearWorld final : public RealWorld {
 public:
  NearWorld(std::string host, bool server_shares, bool client_shares)
      : RealWorld(std::move(host)), server_(settings(server_shares)), client_(settings(client_shares)) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }

 private:
  static NearSettings settings(bool shares) {
    return {.tcp = {.frames_queued_max = kFramesQueuedMax},
            .shm = {.frames_queued_max = kFramesQueuedMax},
            .shared_memory = shares};
  }
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
