// Class UdpPort: sends. Successive datagrams of one length for one destination are passed to the kernel as one message,
// which the kernel or the device cuts again. One call passes all messages.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/packet/address.h"
#include "transport/udp/udp_port.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::udp {
namespace {

constexpr Duration kUncutFor = std::chrono::seconds(10);

/// True if the error may come from ICMP, and be about an earlier datagram instead of this call's.
bool may_be_answer(int error) noexcept {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE ||
         error == EHOSTDOWN || error == EPROTO || error == ENOPROTOOPT || error == EACCES;
}

/// True for EMSGSIZE (EINVAL in older kernels), when datagrams are longer than the route's MTU, and for EIO, when the
/// device computes no checksums.
bool may_mean_uncut(int error) noexcept {
  return error == EINVAL || error == EMSGSIZE || error == EIO || error == EOPNOTSUPP;
}

/// Appends a control message to those of `header`.
template <class Value>
void add_control(msghdr& header, int level, int type, const Value& value) noexcept {
  auto* const control = reinterpret_cast<cmsghdr*>(static_cast<std::byte*>(header.msg_control) + header.msg_controllen);
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(control), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

}  // namespace

bool UdpPort::send(const packet::PacketAddress& to, std::span<const std::byte> header,
                   std::span<const std::byte> payload) {
  if (queued_.size() == kQueuedMax) return false;
  if (four_ && !packet::is_ipv4(to)) {  // the datagram cannot be sent, and counts as lost
    ++counts_.unsent_no_way;
    return true;
  }
  TRIBUTARY_ASSERT(header.size() <= packet::kPortHeaderBytesMax, "a header of {} bytes, of at most {}", header.size(),
                   packet::kPortHeaderBytesMax);
  std::memcpy(heads_.data() + queued_.size() * packet::kPortHeaderBytesMax, header.data(), header.size());
  queued_.push_back({to, static_cast<std::uint16_t>(header.size()), mark_, payload});
  return true;
}

void UdpPort::flush() {
  std::size_t messages = 0;
  for (std::size_t first = 0; first < queued_.size();) {
    const std::size_t count = group_from(first);
    prepare(send_messages_[messages], first, count, messages);
    send_first_[messages] = first;
    first += count;
    send_first_[++messages] = first;
  }
  TRIBUTARY_ASSERT(messages <= queued_.size(), "{} messages have {} datagrams", messages, queued_.size());
  send_messages(messages);
  queued_.clear();
}

/// The number of datagrams from `first` on that make one message: all have the mark and the length of the first, but the
/// last may be shorter.
std::size_t UdpPort::group_from(std::size_t first) noexcept {
  const Queued& begin = queued_[first];
  if (!segmentation_ || (uncut_count_ > 0 && !cuts_for(begin.to))) return 1;
  std::size_t bytes = begin.bytes();
  std::size_t count = 1;
  while (count < kSegmentsMax && first + count < queued_.size()) {
    const Queued& next = queued_[first + count];
    if (next.to != begin.to || next.mark != begin.mark) break;
    if (next.bytes() > begin.bytes() || bytes + next.bytes() > kSegmentBytesMax) break;
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
  TRIBUTARY_ASSERT(vectors <= 2 * count, "{} datagrams have {} parts", count, vectors);
  SocketAddress& address = send_addresses_[index];
  address = packet::socket_address(queued_[first].to, four_);
  message = {};
  message.msg_hdr.msg_name = &address.storage;
  message.msg_hdr.msg_namelen = address.bytes;
  message.msg_hdr.msg_iov = begin;
  message.msg_hdr.msg_iovlen = vectors;
  const Queued& begins = queued_[first];
  if (count == 1 && begins.mark == 0) return;
  message.msg_hdr.msg_control = send_control_.data() + index * kSendControlBytes;
  if (count > 1) add_control(message.msg_hdr, IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(begins.bytes()));
  if (begins.mark != 0) add_control(message.msg_hdr, SOL_SOCKET, SO_MARK, begins.mark);
}

/// A datagram that the system does not take is dropped and counted: the protocol sends it again.
void UdpPort::send_messages(std::size_t count) {
  const auto joined = [this](std::size_t index) { return send_first_[index + 1] - send_first_[index] > 1; };
  int answers = 0;
  for (std::size_t done = 0; done < count;) {
    const int sent = ::sendmmsg(socket_.get(), send_messages_.data() + done, static_cast<unsigned>(count - done),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      answers = 0;
      for (const std::size_t end = done + static_cast<std::size_t>(sent); done < end; ++done) {
        if (!joined(done)) continue;
        counts_.joined_sent += send_first_[done + 1] - send_first_[done];
        refused_in_a_row_ = 0;
      }
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    // Mostly the error is about an earlier datagram, and is reported once: the system has not tried this message yet.
    if (may_be_answer(error) && answers++ < kAnswersMax) {
      refusals_ = true;
      continue;
    }
    answers = 0;
    const std::size_t first = send_first_[done];
    const std::size_t datagrams = send_first_[done + 1] - first;
    if (joined(done) && may_mean_uncut(error)) {
      counts_.joined_refused += datagrams;
      note_uncut(queued_[first].to);
      send_singly(first, datagrams, done);
    } else {
      note_unsent(error, datagrams);
    }
    ++done;
  }
}

/// Sends the datagrams of message `index`, which was not cut, one by one.
void UdpPort::send_singly(std::size_t first, std::size_t count, std::size_t index) {
  int answers = 0;
  for (std::size_t i = first; i < first + count;) {
    mmsghdr message;
    prepare(message, i, 1, index);
    if (::sendmmsg(socket_.get(), &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
      const int error = errno;
      if (error == EINTR || (may_be_answer(error) && answers++ < kAnswersMax)) continue;
      note_unsent(error, 1);
    }
    answers = 0;
    ++i;
  }
}

void UdpPort::note_unsent(int error, std::size_t datagrams) noexcept {
  switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
      counts_.unsent_full += datagrams;
      return;
    case EMSGSIZE:
      counts_.unsent_too_long += datagrams;
      return;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      counts_.unsent_no_way += datagrams;
      return;
    default:
      counts_.unsent_other += datagrams;
  }
}

/// A route may refuse a message that other routes take: its device cannot cut messages, or its MTU is smaller. Only
/// this destination then gets single datagrams for a while. If several destinations in a row refuse, the system itself
/// cannot cut.
void UdpPort::note_uncut(const packet::PacketAddress& to) {
  ++refused_in_a_row_;
  if (uncut_count_ == kUncutMax) {
    if (refused_in_a_row_ > kUncutMax) {
      segmentation_ = false;
      return;
    }
    std::ranges::rotate(uncut_, uncut_.begin() + 1);
    --uncut_count_;
  }
  TRIBUTARY_ASSERT(uncut_count_ < uncut_.size(), "{} destinations get single datagrams", uncut_count_);
  uncut_[uncut_count_++] = {to, Clock::now() + kUncutFor};
}

bool UdpPort::cuts_for(const packet::PacketAddress& to) noexcept {
  while (uncut_count_ > 0 && uncut_.front().until <= Clock::now()) {
    std::ranges::rotate(uncut_, uncut_.begin() + 1);
    --uncut_count_;
  }
  const auto known = std::span(uncut_).first(uncut_count_);
  return std::ranges::find(known, to, &Uncut::to) == known.end();
}

}  // namespace tributary::transport::udp
