#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/real_world.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::test {
namespace {

class UdpWorld final : public RealWorld {
 public:
  UdpWorld(std::string host, const UdpSettings& settings)
      : RealWorld(std::move(host)), server_(settings), client_(settings) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }
  Endpoint nowhere() override {
    UdpTransport other;
    return closed_port(other);
  }

 private:
  UdpTransport server_;
  UdpTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](const char* host, UdpSettings settings) {
    settings.frames_queued_max = kFramesQueuedMax;
    return [host, settings] { return std::make_unique<UdpWorld>(host, settings); };
  };
  return {
      {"ipv4", world("127.0.0.1", {})},
      {"ipv6", world("::1", {})},
      {"packets_of_ethernet", world("127.0.0.1", {.datagram_bytes_max = 1472})},
      {"without_offloads", world("127.0.0.1", {.datagram_bytes_max = 1472, .offloads = false})},
      {"small_socket_buffers", world("127.0.0.1", {.send_buffer_bytes = 32768, .receive_buffer_bytes = 65536})},
      {"authenticated", world("127.0.0.1", {.keys = sealed_keys(PacketSecurity::authenticate)})},
      {"encrypted", world("127.0.0.1", {.keys = sealed_keys(PacketSecurity::encrypt)})},
      {"encrypted_everything_at_once", world("127.0.0.1", {.datagram_bytes_max = 1472,
                                                           .keys = sealed_keys(PacketSecurity::encrypt),
                                                           .faults = "lost=20,repeated=10,overtaken=50,damaged=10"})},
      {"lost_1_in_100", world("127.0.0.1", {.datagram_bytes_max = 1472, .faults = "lost=10"})},
      {"everything_at_once",
       world("127.0.0.1", {.datagram_bytes_max = 1472, .faults = "lost=20,repeated=10,overtaken=50,damaged=10"})}};
}

}  // namespace tributary::transport::test
