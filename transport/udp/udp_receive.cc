// Class UdpPort: receives. One call brings many messages; the kernel may have joined datagrams of one sender into one
// message.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>  // comes after <time.h>, which it needs and does not include

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/packet/address.h"
#include "transport/udp/udp_port.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::udp {
namespace {

constexpr int kEcnMask = 0x03;
constexpr int kCongestionExperienced = 0x03;

/// The difference between this process's clock and the system's wall clock, in which it notes arrivals.
Duration wall_to_steady() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return Clock::now().time_since_epoch() - std::chrono::duration_cast<Duration>(wall);
}

template <class T>
T value_of(const cmsghdr& control) noexcept {
  T value{};
  std::memcpy(&value, CMSG_DATA(&control), sizeof value);
  return value;
}

/// Reads a message of the error queue. Returns false if the error has no meaning for the protocol.
bool read_error(msghdr& header, packet::ReceivedPacket& as) noexcept {
  for (const cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(at))) {
    const bool error = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                       (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
    if (!error) continue;
    const auto what = value_of<sock_extended_err>(*at);
    const bool too_long = what.ee_errno == EMSGSIZE && what.ee_info != 0;
    if (what.ee_errno != ECONNREFUSED && !too_long) continue;
    as = {.refused = true, .path_bytes = too_long ? what.ee_info : 0};
    return true;
  }
  return false;
}

}  // namespace

std::size_t UdpPort::receive(std::span<packet::ReceivedPacket> into) {
  // Refusals are shown beside data, and leave room for data, so that a host that provokes many refusals stops no
  // connection.
  std::size_t count = refusals_ ? take_refusals(into.first(std::min(into.size() / 2, kRefusalsPerTurn))) : 0;
  TRIBUTARY_ASSERT(message_ <= messages_count_ && messages_count_ <= kMessages, "message {} of {} is handed out",
                   message_, messages_count_);
  if (message_ == messages_count_) receive_messages();
  while (count < into.size() && message_ < messages_count_) {
    const Message& message = messages_[message_];
    const std::size_t bytes = std::min(message.segment_bytes, message.bytes - offset_);
    TRIBUTARY_ASSERT(offset_ <= message.bytes, "byte {} of a message of {} is handed out", offset_, message.bytes);
    into[count++] = {.from = message.from,
                     .bytes = std::span(buffers_).subspan(message_ * kMessageBytes + offset_, bytes),
                     .congestion_experienced = message.marked,
                     .arrived = message.arrived};
    offset_ += bytes;
    if (offset_ < message.bytes) continue;
    ++message_;
    offset_ = 0;
  }
  return count;
}

void UdpPort::receive_messages() {
  message_ = messages_count_ = offset_ = 0;
  for (std::size_t i = 0; i < kMessages; ++i) {
    vectors_[i] = {buffers_.data() + i * kMessageBytes, kMessageBytes};
    msghdr& header = headers_[i].msg_hdr;
    header = {};
    header.msg_name = &addresses_[i].storage;
    header.msg_namelen = sizeof addresses_[i].storage;
    header.msg_iov = &vectors_[i];
    header.msg_iovlen = 1;
    header.msg_control = control_.data() + i * kControlBytes;
    header.msg_controllen = kControlBytes;
  }
  int count = -1;
  for (int answers = 0; count < 0 && answers <= kAnswersMax; ++answers) {
    count = ::recvmmsg(socket_.get(), headers_.data(), kMessages, MSG_DONTWAIT, nullptr);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) refusals_ = true;  // the error is about a datagram that was sent, and is reported once
  }
  if (count <= 0) return;
  const Duration to_steady = wall_to_steady();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Message& message = messages_[i];
    addresses_[i].bytes = headers_[i].msg_hdr.msg_namelen;
    message = {.from = packet::packet_address(addresses_[i]), .bytes = headers_[i].msg_len};
    message.segment_bytes = message.bytes;
    read_control(headers_[i].msg_hdr, message, to_steady);
    if (message.segment_bytes < message.bytes) {
      counts_.joined_received += (message.bytes + message.segment_bytes - 1) / message.segment_bytes;
    }
  }
  messages_count_ = static_cast<std::size_t>(count);
}

void UdpPort::read_control(msghdr& header, Message& message, Duration to_steady) const {
  for (const cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(control))) {
    const int level = control->cmsg_level;
    const int type = control->cmsg_type;
    if (level == IPPROTO_IP && type == IP_TOS) {
      message.marked = (value_of<std::uint8_t>(*control) & kEcnMask) == kCongestionExperienced;
    } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
      message.marked = (value_of<int>(*control) & kEcnMask) == kCongestionExperienced;
    } else if (level == IPPROTO_UDP && type == UDP_GRO) {
      const int bytes = value_of<int>(*control);
      if (bytes > 0) message.segment_bytes = static_cast<std::size_t>(bytes);
    } else if (level == SOL_SOCKET && type == SCM_TIMESTAMPNS) {
      const auto stamp = value_of<timespec>(*control);
      message.arrived =
          TimePoint(std::chrono::seconds(stamp.tv_sec) + std::chrono::nanoseconds(stamp.tv_nsec) + to_steady);
    }
  }
}

/// Takes ICMP answers to datagrams that were sent: the system queues them with their quotations.
std::size_t UdpPort::take_refusals(std::span<packet::ReceivedPacket> into) {
  std::size_t count = 0;
  for (std::size_t taken = 0; count < into.size() && taken < kErrorsPerTurn; ++taken) {
    SocketAddress address;
    std::array<std::byte, 512> control;
    iovec vector{refusal_bytes_[count].data(), refusal_bytes_[count].size()};
    msghdr header{};
    header.msg_name = &address.storage;
    header.msg_namelen = sizeof address.storage;
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(socket_.get(), &header, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (bytes < 0) {
      refusals_ = false;  // the error queue is empty
      return count;
    }
    packet::ReceivedPacket& as = into[count];
    if (!read_error(header, as)) continue;
    address.bytes = header.msg_namelen;
    as.from = packet::packet_address(address);
    as.bytes = std::span(refusal_bytes_[count++]).first(static_cast<std::size_t>(bytes));
  }
  return count;
}

}  // namespace tributary::transport::udp
