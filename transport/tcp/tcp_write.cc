// Class TcpConnection: writes. One gathering call writes many frames, with headers from the queue and payloads from the
// sender's memory.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/tcp/tcp_connection.h"
#include "transport/tcp/tcp_sealing.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

constexpr std::size_t kVectorsMax = 256;  // vectors of one call; the system allows 1024
constexpr std::size_t kSmallBytes = 256;  // copying up to these bytes is faster than a list of parts for the system

namespace {

ssize_t write_vectors(int socket, std::span<iovec> vectors, std::size_t bytes) noexcept {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (bytes <= kSmallBytes) {
    std::array<std::byte, kSmallBytes> joined;
    std::size_t end = 0;
    for (const iovec& part : vectors) {
      if (part.iov_len > 0) std::memcpy(joined.data() + end, part.iov_base, part.iov_len);
      end += part.iov_len;
    }
    TRIBUTARY_ASSERT(end == bytes, "{} bytes were gathered, and {} are written", bytes, end);
    return ::send(socket, joined.data(), end, kFlags);
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  return ::sendmsg(socket, &message, kFlags);
}

}  // namespace

bool TcpConnection::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (!taking_frames()) return false;
  if (queue_.borrowed() >= core_.settings().frames_queued_max) return false;
  queue_.push_borrowed(header, payload, cookie);
  TRIBUTARY_ASSERT(queue_.borrowed() <= core_.settings().frames_queued_max, "{} frames are queued to {}",
                   queue_.borrowed(), peer_);
  if (writable_ && state_ == State::open) core_.make_dirty(*this);
  return true;
}

void TcpConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!taking_frames()) return;
  queue_.push_copy(header, payload);
  if (writable_ && state_ == State::open) core_.make_dirty(*this);
}

void TcpConnection::write_turn() {
  if ((state_ != State::open && state_ != State::flushing) || write_error_ != 0) return;
  if (sealed_ && !sealed_->ready()) return TcpSealing::write_demand(*this);
  std::size_t budget = bytes_in_turn(core_.settings().poll_bytes_max);
  while (writable_ && !TcpSealing::all_written(*this) && budget > 0 && write_some(budget)) {
  }
  if (write_error_ != 0) return;
  after_write();
  tell_sent();
}

bool TcpConnection::write_some(std::size_t& budget) {
  if (sealed_) return TcpSealing::write_some(*this, budget);
  iovec vectors[kVectorsMax];
  const SendQueue::Gathered gathered = queue_.gather(vectors, budget);
  TRIBUTARY_ASSERT(gathered.bytes > 0 && gathered.bytes <= budget, "{} bytes are gathered for {}, within {}",
                   gathered.bytes, peer_, budget);
  ++core_.statistics.write_calls;
  const ssize_t wrote = write_vectors(socket_.get(), std::span(vectors).first(gathered.vectors), gathered.bytes);
  if (wrote < 0) {
    if (errno == EINTR) return true;
    writable_ = false;
    if (errno != EAGAIN && errno != EWOULDBLOCK) write_failed(errno);
    return false;
  }
  const auto bytes = static_cast<std::size_t>(wrote);
  TRIBUTARY_ASSERT(bytes <= gathered.bytes, "{} bytes were written to {}, and {} were given", bytes, peer_,
                   gathered.bytes);
  core_.statistics.bytes_sent += bytes;
  core_.statistics.frames_sent += queue_.consume(bytes);
  if (bytes < gathered.bytes) writable_ = false;
  budget -= std::min(budget, bytes);
  spend(bytes);
  if (state_ == State::open && bytes_watch_.begin()) core_.set_deadline(*this, BytesWatch::kFirst);
  return true;
}

/// The other side may have sent the reason before it closed, so this code first reads the last bytes.
void TcpConnection::write_failed(int error) {
  write_error_ = error;
  queue_.clear();
  readable_ = true;
  if (state_ == State::flushing) return close();
  make_due();
}

void TcpConnection::after_write() {
  if (!TcpSealing::all_written(*this)) return writable_ ? make_due() : void();
  if (state_ == State::flushing) linger();
}

void TcpConnection::tell_sent() {
  while (serving() && handler_ != nullptr) {
    const auto cookie = queue_.next_sent();
    if (!cookie) return;
    core_.count_callback();
    handler_->on_sent(*channel_, *cookie);
  }
}

}  // namespace tributary::transport
