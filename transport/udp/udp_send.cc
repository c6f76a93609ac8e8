// Sending: datagrams that follow each other to one place, of one length, go to the kernel as one message which it, or
// the device, cuts again; all messages in one call.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "packet/address.h"
#include "udp/udp_port.h"

namespace tributary::transport::udp {
namespace {

constexpr std::size_t kSegmentControlBytes = CMSG_SPACE(sizeof(std::uint16_t));

}  // namespace

bool UdpPort::send(const packet::PacketAddress& to, std::span<const std::byte> header,
                   std::span<const std::byte> payload) {
  if (queued_.size() == kQueuedMax) return false;
  if (four_ && !packet::is_ipv4(to)) return true;  // cannot go: as if it were lost
  std::memcpy(heads_.data() + queued_.size() * packet::kPortHeaderBytesMax, header.data(), header.size());
  queued_.push_back({to, static_cast<std::uint32_t>(header.size()), payload});
  return true;
}

void UdpPort::flush() {
  std::size_t messages = 0;
  for (std::size_t first = 0; first < queued_.size();) {
    const std::size_t count = group_from(first);
    prepare(send_messages_[messages], first, count, messages);
    send_first_[messages] = first;
    first += count;
    ++messages;
  }
  send_messages(messages);
  queued_.clear();
}

/// How many datagrams from `first` on make one message: all as long as the first, the last may be shorter.
std::size_t UdpPort::group_from(std::size_t first) const noexcept {
  const Queued& begin = queued_[first];
  std::size_t bytes = begin.bytes();
  std::size_t count = 1;
  while (segmentation_ && count < kSegmentsMax && first + count < queued_.size()) {
    const Queued& next = queued_[first + count];
    if (next.to != begin.to || next.bytes() > begin.bytes() || bytes + next.bytes() > kSegmentBytesMax) break;
    bytes += next.bytes();
    ++count;
    if (next.bytes() < begin.bytes()) break;
  }
  return count;
}

void UdpPort::prepare(mmsghdr& message, std::size_t first, std::size_t count, std::size_t index) {
  std::size_t vectors = 0;
  iovec* const begin = send_vectors_.data() + 2 * first;
  for (std::size_t i = first; i < first + count; ++i) {
    const Queued& datagram = queued_[i];
    begin[vectors++] = {heads_.data() + i * packet::kPortHeaderBytesMax, datagram.head_bytes};
    if (!datagram.payload.empty()) {  // iovec has no const form; sendmmsg only reads
      begin[vectors++] = {const_cast<std::byte*>(datagram.payload.data()), datagram.payload.size()};
    }
  }
  SocketAddress& address = send_addresses_[index];
  address = packet::socket_address(queued_[first].to, four_);
  message = {};
  message.msg_hdr.msg_name = &address.storage;
  message.msg_hdr.msg_namelen = address.bytes;
  message.msg_hdr.msg_iov = begin;
  message.msg_hdr.msg_iovlen = vectors;
  if (count == 1) return;
  message.msg_hdr.msg_control = send_control_.data() + index * kSegmentControlBytes;
  message.msg_hdr.msg_controllen = kSegmentControlBytes;
  cmsghdr* const control = CMSG_FIRSTHDR(&message.msg_hdr);
  control->cmsg_level = IPPROTO_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto bytes = static_cast<std::uint16_t>(queued_[first].bytes());
  std::memcpy(CMSG_DATA(control), &bytes, sizeof bytes);
}

/// What the system does not take is dropped: the protocol sends it again.
void UdpPort::send_messages(std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const int sent = ::sendmmsg(socket_.get(), send_messages_.data() + done, static_cast<unsigned>(count - done),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) {
      // Mostly the answer to something that was sent before: this message has not been tried yet.
      if (!std::exchange(refusals_, true)) continue;
    }
    const bool joined = send_messages_[done].msg_hdr.msg_controllen != 0;
    if (joined && (error == EIO || error == EINVAL || error == EOPNOTSUPP)) {
      segmentation_ = false;  // the device or the system cannot cut: from here on one by one
      queued_.erase(queued_.begin(), queued_.begin() + static_cast<std::ptrdiff_t>(send_first_[done]));
      std::memmove(heads_.data(), heads_.data() + send_first_[done] * packet::kPortHeaderBytesMax,
                   queued_.size() * packet::kPortHeaderBytesMax);
      return flush();
    }
    ++done;
  }
}

}  // namespace tributary::transport::udp
