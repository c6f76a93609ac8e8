#include "transport/near/detour.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <utility>

#include "transport/shm/shm_connection.h"
#include "transport/shm/unix_socket.h"
#include "transport/tcp/tcp_connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr Duration kGreetingLimit = std::chrono::seconds(1);  // then TCP finds out whether the listener hangs

bool means_all(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

std::string name_at_any_address(std::uint16_t port) {
  return shared_name("*:" + std::to_string(port));
}

/// Calls a listener at this very address before a listener at all addresses, as TCP does.
OwnedDescriptor call(const Endpoint& endpoint) {
  for (const std::string& name : {shared_name(to_string(endpoint)), name_at_any_address(endpoint.port)}) {
    auto socket = connect_to_name(name);
    if (socket) return trusted_user(socket->get()) ? std::move(*socket) : OwnedDescriptor();
  }
  return {};
}

bool is_loopback(const SocketAddress& address) noexcept {
  if (address.family() != AF_INET) return false;
  return (ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24U) == 127;
}

/// Shared memory has failed: the channel goes on over TCP.
void back_to_tcp(TcpCore& core, ShmConnection& from, std::deque<SocketAddress>&& addresses) {
  TRIBUTARY_ASSERT(from.channel() != nullptr, "the channel to {} is gone, and its connection goes on", from.peer());
  auto& channel = static_cast<ConnectionChannel&>(*from.channel());
  auto connection = TcpConnection::make(core, from.peer(), nullptr);
  Beginning beginning = from.hand_on();
  channel.go_on_with(connection);
  connection->go_on(std::move(addresses), std::move(beginning));
}

}  // namespace

std::string name_of_listener(const Endpoint& local) {
  return means_all(local.host) ? name_at_any_address(local.port) : shared_name(to_string(local));
}

/// Packets to an address of this host leave from that address, unless the socket is bound. Sends no packet.
bool is_local(const SocketAddress& address) noexcept {
  if (is_loopback(address)) return true;
  const OwnedDescriptor probe(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress source;
  source.bytes = sizeof source.storage;
  if (!probe.is_open() || ::connect(probe.get(), address.get(), address.bytes) != 0 ||
      ::getsockname(probe.get(), source.get(), &source.bytes) != 0 || source.family() != address.family()) {
    return false;
  }
  if (address.family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(source.storage).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(source.storage).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr, sizeof(in6_addr)) == 0;
}

std::function<bool(TcpConnection&, const SocketAddress&)> detour_by(TcpCore& core, std::shared_ptr<ShmPart> part) {
  return [&core, part = std::move(part)](TcpConnection& from, const SocketAddress& address) {
    if (!is_local(address)) return false;
    OwnedDescriptor socket = call(endpoint_of(address));
    if (!socket.is_open()) return false;
    TRIBUTARY_ASSERT(from.channel() != nullptr, "the channel to {} is gone, and its connection goes on", from.peer());
    auto& channel = static_cast<ConnectionChannel&>(*from.channel());
    std::deque<SocketAddress> addresses = from.take_addresses();
    addresses.push_front(address);
    auto connection = ShmConnection::make(core, part, from.peer(), nullptr);
    Beginning beginning = from.hand_on();
    channel.go_on_with(connection);
    connection->go_on(std::move(socket), std::move(beginning), kGreetingLimit,
                      [&core, addresses = std::move(addresses)](ShmConnection& failed) mutable {
                        back_to_tcp(core, failed, std::move(addresses));
                      });
    return true;
  };
}

}  // namespace tributary::transport
