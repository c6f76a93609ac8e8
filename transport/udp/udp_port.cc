#include "transport/udp/udp_port.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transport/packet/address.h"

namespace tributary::transport::udp {
namespace {

using packet::PacketAddress;

// Bytes of the headers of IP and UDP before UDP's payload.
constexpr std::size_t kHeaders4 = 20 + 8;
constexpr std::size_t kHeaders6 = 40 + 8;
constexpr int kEct0 = 0x02;    // ECN-capable: RFC 3168
constexpr int kDscpShift = 2;  // RFC 2474

template <class T>
bool set_option(int socket, int level, int name, const T& value) noexcept {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

bool knows_option(int socket, int level, int name) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, level, name, &value, &size) == 0;
}

void set_buffer(int socket, int forced, int plain, std::size_t bytes) noexcept {
  const int value = static_cast<int>(std::min<std::size_t>(bytes, 1U << 30));
  if (!set_option(socket, SOL_SOCKET, forced, value)) set_option(socket, SOL_SOCKET, plain, value);
}

std::size_t receive_buffer_of(int socket) noexcept {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  (void)::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
  return static_cast<std::size_t>(std::max(bytes, 0));
}

/// Sets the socket's options. On a system that lacks one of them, the port works without marks, or without early news
/// of a dead process.
///
/// Packets are never sent in fragments, and may be as long as the device carries (PROBE). datagram_bytes_max() asks the
/// system for the length that it has learned from routers, and obeys it unless the protocol needs more. With the
/// system's own way (DO), any host that guesses a pair of ports could reduce the length to 552 bytes for ten minutes,
/// and no packet of this protocol would be sent (RFC 8085, 3.2; RFC 8899, 4.6.2).
void set_options(int socket, bool four, const UdpSettings& settings) noexcept {
  set_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF, settings.receive_buffer_bytes);
  set_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF, settings.send_buffer_bytes);
  set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  const int traffic_class = settings.dscp << kDscpShift | (settings.ecn ? kEct0 : 0);
  set_option(socket, IPPROTO_IP, IP_TOS, traffic_class);
  set_option(socket, IPPROTO_IP, IP_RECVTOS, 1);
  set_option(socket, IPPROTO_IP, IP_RECVERR, 1);
  set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (!four) {
    set_option(socket, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
    set_option(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_RECVERR, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  }
  if (settings.offloads) set_option(socket, IPPROTO_UDP, UDP_GRO, 1);
  const auto busy_us = std::chrono::duration_cast<std::chrono::microseconds>(settings.busy_poll).count();
  if (busy_us > 0)
    set_option(socket, SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(std::min<std::int64_t>(busy_us, 1000)));
}

SocketAddress any_address(bool four, std::uint16_t port) {
  PacketAddress any;
  any.port = port;
  return packet::socket_address(any, four);
}

/// The addresses to try, one after the other.
Result<std::vector<SocketAddress>> addresses_for(const Endpoint& at) {
  if (!at.host.empty()) return look_up(at);
  return std::vector{any_address(false, at.port), any_address(true, at.port)};
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::size_t receive_buffer_granted(std::size_t wanted) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return 0;
  set_buffer(socket.get(), SO_RCVBUFFORCE, SO_RCVBUF, wanted);
  return receive_buffer_of(socket.get());
}

Result<std::unique_ptr<packet::PacketPort>> UdpPort::open(const Endpoint& at, const UdpSettings& settings) {
  Endpoint where = at;
  if (where.host.empty()) where.host = settings.bind_address;
  const auto addresses = addresses_for(where);
  if (!addresses) return fail(Errc::io, addresses.error().message);
  int error = 0;
  for (const SocketAddress& address : *addresses) {
    const bool four = address.family() == AF_INET;
    const int socket = ::socket(address.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (socket < 0) {
      error = errno;
      continue;
    }
    if (!four) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int refusal = wake < 0 ? errno : 0;
    auto port = std::make_unique<UdpPort>(socket, wake, four, settings.offloads);
    set_options(socket, four, settings);
    if (wake >= 0) {
      if (::bind(socket, address.get(), address.bytes) == 0) return port;
      refusal = errno;
    }
    if (error == 0 || error == EAFNOSUPPORT) error = refusal;
    if (refusal == EADDRINUSE) break;  // the port must not listen only on the other family
  }
  return fail(Errc::io, error == EADDRINUSE ? "the address is in use." : error_text(error) + ".");
}

UdpPort::UdpPort(int socket, int wake, bool four, bool offloads)
    : socket_(socket),
      wake_(wake),
      watched_{{.fd = socket, .events = POLLIN, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}},
      four_(four),
      segmentation_(offloads && knows_option(socket, IPPROTO_UDP, UDP_SEGMENT)),
      buffers_(kMessages * kMessageBytes),
      control_(kMessages * kControlBytes),
      heads_(kQueuedMax * packet::kPortHeaderBytesMax),
      send_vectors_(2 * kQueuedMax),
      send_messages_(kQueuedMax),
      send_addresses_(kQueuedMax),
      send_first_(kQueuedMax + 1),
      send_control_(kQueuedMax * kSendControlBytes) {
  queued_.reserve(kQueuedMax);
}

void UdpPort::watch(std::span<const int> descriptors) {
  watched_.resize(2);
  for (const int descriptor : descriptors) watched_.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
}

void UdpPort::wait(Duration limit) {
  if (message_ < messages_count_ || refusals_) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()),
                      static_cast<long>(std::chrono::nanoseconds(limit - seconds).count())};
  if (::ppoll(watched_.data(), watched_.size(), &time, nullptr) <= 0) return;
  if (watched_[1].revents != 0) {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
  }
  if ((watched_[0].revents & POLLERR) != 0) refusals_ = true;
}

void UdpPort::set_priority(std::uint32_t priority) noexcept {
  if (priority != 0 && !may_mark_) may_mark_ = set_option(socket_.get(), SOL_SOCKET, SO_MARK, 0);
  mark_ = may_mark_.value_or(false) ? priority : 0;
}

void UdpPort::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);  // fails only after 2^64 wakes
}

/// Asks the system for its route by a socket that is connected to the address. Sends no packet.
std::size_t UdpPort::datagram_bytes_max(const PacketAddress& to) {
  const bool four = packet::is_ipv4(to);
  const std::size_t headers = four ? kHeaders4 : kHeaders6;
  const SocketAddress address = packet::socket_address(to, four);
  const Descriptor probe(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (probe.get() < 0 || ::connect(probe.get(), address.get(), address.bytes) != 0 ||
      ::getsockopt(probe.get(), four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_MTU : IPV6_MTU, &bytes, &size) != 0) {
    return 0;  // the caller then takes the protocol's shortest length
  }
  return static_cast<std::size_t>(std::clamp(bytes, 0, 65535)) -
         std::min<std::size_t>(headers, static_cast<std::size_t>(std::max(bytes, 0)));
}

PacketAddress UdpPort::local() const {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  (void)::getsockname(socket_.get(), address.get(), &address.bytes);
  return packet::packet_address(address);
}

}  // namespace tributary::transport::udp
