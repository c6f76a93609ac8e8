#pragma once
// Channels over a port that loses, repeats, reorders and damages datagrams: UDP sockets or a device. A transport's own
// connections and its first listener share one port; each further listener, with the connections that it accepts, has a
// port of its own.
#include <functional>
#include <memory>

#include "transport/packet/port.h"
#include "transport/packet/settings.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

class PacketCore;

/// The group and lane of a connection, taken from the first frame that was queued on it.
struct Claim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

class PacketTransport final : public Transport {
 public:
  /// Opens a port when it is first needed: at the address that listen() got, or at any address (an empty host and port
  /// 0) if the transport connects before it listens. Errc::io has the reason, such as "in use".
  using OpenPort = std::function<Result<std::unique_ptr<PacketPort>>(const Endpoint& at)>;
  /// Returns the port of this host that serves a connection; 0 refuses the connection.
  using Route = std::function<std::uint16_t(const Claim& claim)>;
  using Time = std::function<TimePoint()>;

  PacketTransport(OpenPort open, const PacketSettings& settings, Time time = &Clock::now);
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user may destroy
  /// them later. May wait for a name look-up that is under way.
  ~PacketTransport() override;
  PacketTransport(const PacketTransport&) = delete;
  PacketTransport& operator=(const PacketTransport&) = delete;

  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// Listens, but sends each opener to another port instead of accepting it.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override;
  void post(std::function<void()> call) override;

  /// The counts of the first port.
  [[nodiscard]] PacketStatistics statistics() const;
  /// The time when poll() must be called even if no packet comes; max: never. For tests on virtual time.
  [[nodiscard]] TimePoint next_deadline() const;

 private:
  [[nodiscard]] Result<std::unique_ptr<Listener>> start_listening(const Endpoint& at, Acceptor* acceptor, Route route);
  const std::function<std::shared_ptr<PacketCore>()> make_core_;
  const std::shared_ptr<PacketCore> core_;
};

}  // namespace tributary::transport::packet
