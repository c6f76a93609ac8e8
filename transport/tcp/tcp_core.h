#pragma once
// The core of a TcpTransport: its settings, its counts, and the look-up of names.
#include <functional>
#include <span>
#include <vector>

#include "transport/socket/resolver.h"
#include "transport/socket/socket_core.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport {

class TcpConnection;

class TcpCore final : public SocketCore {
 public:
  explicit TcpCore(const TcpSettings& settings)
      : SocketCore(settings.busy_poll, settings.spin_max),
        settings_(settings),
        resolver_([this](std::function<void()> call) { post(std::move(call)); }) {}
  void shut_down() override {
    SocketCore::shut_down();
    resolver_.stop();
    calls().forget();  // drops the resolver's last answers
  }

  [[nodiscard]] Resolver& resolver() noexcept { return resolver_; }
  [[nodiscard]] const TcpSettings& settings() const noexcept { return settings_; }
  TcpStatistics statistics;
  /// Room for the records of one connection's turn, one for each direction. Allocated by the first sealed connection.
  [[nodiscard]] std::span<std::byte> room_to_seal() { return room(sealing_); }
  [[nodiscard]] std::span<std::byte> room_to_open() { return room(opening_); }
  /// Called before each address is tried. Returns true if another connection took the place of this connection, which
  /// was handed_on().
  std::function<bool(TcpConnection&, const SocketAddress&)> detour;

 private:
  static constexpr std::size_t kRoomBytes = 320U << 10U;  // some of the largest records
  [[nodiscard]] static std::span<std::byte> room(std::vector<std::byte>& bytes) {
    if (bytes.empty()) bytes.resize(kRoomBytes);
    return bytes;
  }

  TcpSettings settings_;
  std::vector<std::byte> sealing_, opening_;
  Resolver resolver_;  // declared last, because its thread calls post()
};

}  // namespace tributary::transport
