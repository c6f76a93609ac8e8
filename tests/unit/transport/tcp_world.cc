#include "tests/unit/transport/tcp_world.h"

#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/driven_world.h"

namespace tributary::transport::test {

std::vector<NamedWorld> worlds() {
  const auto world = [](const char* host, const TcpSettings& settings) {
    return [host, settings] { return std::make_unique<TcpWorld>(host, settings); };
  };
  const TcpSettings plain{.frames_queued_max = kFramesQueuedMax};
  const TcpSettings small_buffers{
      .send_buffer_bytes = 32768, .receive_buffer_bytes = 32768, .frames_queued_max = kFramesQueuedMax};
  const TcpSettings small_turns{.frames_queued_max = kFramesQueuedMax, .poll_bytes_max = 70'001};
  const auto sealed = [](TcpSettings settings, PacketSecurity security) {
    settings.keys = sealed_keys(security);
    return settings;
  };
  return {{"authenticated", world("127.0.0.1", sealed(plain, PacketSecurity::authenticate))},
          {"encrypted", world("::1", sealed(plain, PacketSecurity::encrypt))},
          {"encrypted_small_socket_buffers", world("127.0.0.1", sealed(small_buffers, PacketSecurity::encrypt))},
          {"encrypted_small_turns", world("127.0.0.1", sealed(small_turns, PacketSecurity::encrypt))},
          {"ipv4", world("127.0.0.1", plain)},
          {"ipv6", world("::1", plain)},
          {"small_socket_buffers", world("127.0.0.1", small_buffers)},
          {"small_turns", world("127.0.0.1", small_turns)},
          {"driven_from_outside", [plain] { return std::make_unique<DrivenWorld>(plain); }}};
}

}  // namespace tributary::transport::test
