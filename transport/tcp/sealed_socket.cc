#include "tributary/transport/sealed_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/tcp/sealed_stream.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr int kRecordFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
/// Room for two of the longest records: an idle connection keeps none, so the room belongs to the thread.
constexpr std::size_t kRoomBytes = 2 * (kPayloadBytesMax + kRecordExtraBytes);

std::span<std::byte> room_of_thread() {
  thread_local std::vector<std::byte> room(kRoomBytes);
  return room;
}

}  // namespace

/// A place in the caller's parts.
class SealedSocket::Cursor {
 public:
  explicit Cursor(std::span<const iovec> parts) : parts_(parts) {
    for (const iovec& part : parts) left_ += part.iov_len;
    skip_ended();
  }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  /// The bytes up to the end of the present part.
  [[nodiscard]] std::span<std::byte> piece() const noexcept {
    if (left_ == 0) return {};
    return std::span(static_cast<std::byte*>(parts_.front().iov_base), parts_.front().iov_len).subspan(within_);
  }
  void advance(std::size_t bytes) noexcept {
    TRIBUTARY_ASSERT(bytes <= left_, "{} bytes are passed where {} are left", bytes, left_);
    while (bytes > 0) {
      const std::size_t some = std::min(bytes, piece().size());
      within_ += some;
      left_ -= some;
      bytes -= some;
      skip_ended();
    }
  }

 private:
  void skip_ended() noexcept {
    while (!parts_.empty() && within_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      within_ = 0;
    }
  }

  std::span<const iovec> parts_;
  std::size_t within_ = 0;
  std::size_t left_ = 0;
};

SealedSocket::SealedSocket(std::unique_ptr<SealedStream> stream) : stream_(std::move(stream)) {
  TRIBUTARY_ASSERT(stream_ != nullptr && stream_->ready(), "a socket has a seal without keys");
}

SealedSocket::~SealedSocket() = default;

// ---- Writing

/// Writes the bytes that are sealed already. Returns false, with errno set, if the system does not take all of them.
bool SealedSocket::flush(int socket) {
  while (!stream_->unsent().empty()) {
    const auto unsent = stream_->unsent();
    const ssize_t wrote = ::send(socket, unsent.data(), unsent.size(), kRecordFlags);
    if (wrote < 0 && errno != EINTR) return false;
    stream_->note_sent(static_cast<std::size_t>(std::max<ssize_t>(wrote, 0)));
  }
  unreported_ += std::exchange(pending_, 0);
  return true;
}

/// Seals as many records as there is room for. Returns their bytes, and adds the bytes in them to `content`; 0: OpenSSL
/// has failed.
std::size_t SealedSocket::seal(Cursor& from, std::span<std::byte> room, std::size_t& content) {
  std::size_t used = 0;
  while (from.left() > 0 && room.size() - used > kRecordExtraBytes) {
    const std::size_t bytes = std::min({kPayloadBytesMax, from.left(), room.size() - used - kRecordExtraBytes});
    const auto record = room.subspan(used, bytes + kRecordExtraBytes);
    std::span<const std::byte> whole = from.piece();
    if (whole.size() >= bytes) {
      whole = whole.first(bytes);
      from.advance(bytes);
    } else {  // the bytes lie in several parts
      const auto place = record.subspan(kRecordHeadBytes, bytes);
      for (std::size_t at = 0; at < bytes;) {
        const auto piece = from.piece().first(std::min(from.piece().size(), bytes - at));
        std::memcpy(place.data() + at, piece.data(), piece.size());
        from.advance(piece.size());
        at += piece.size();
      }
      whole = place;
    }
    if (!stream_->seal_bytes(whole, record)) return 0;
    used += record.size();
    content += bytes;
  }
  return used;
}

ssize_t SealedSocket::write(int socket, std::span<const iovec> parts) {
  if (!flush(socket)) return -1;
  Cursor from(parts);
  std::size_t written = std::min(unreported_, from.left());
  unreported_ -= written;
  from.advance(written);
  while (unreported_ == 0 && from.left() > 0) {
    const auto room = room_of_thread();
    std::size_t content = 0;
    const std::size_t bytes = seal(from, room, content);
    if (bytes == 0) {
      errno = EPROTO;
      return -1;
    }
    const ssize_t wrote = ::send(socket, room.data(), bytes, kRecordFlags);
    if (wrote < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    const std::size_t sent = static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
    if (sent < bytes) {
      stream_->keep_unsent(room.subspan(sent, bytes - sent));
      pending_ = content;
      break;
    }
    written += content;
  }
  if (written > 0 || parts.empty()) return static_cast<ssize_t>(written);
  errno = EAGAIN;
  return -1;
}

// ---- Reading

void SealedSocket::take_opened(Cursor& to) {
  while (opened_begin_ < opened_.size() && to.left() > 0) {
    const std::size_t some = std::min(opened_.size() - opened_begin_, to.piece().size());
    std::memcpy(to.piece().data(), opened_.data() + opened_begin_, some);
    to.advance(some);
    opened_begin_ += some;
  }
  if (opened_begin_ < opened_.size()) return;
  opened_.clear();
  opened_begin_ = 0;
}

/// Opens the records that are there, until the caller's room is full. Returns false if one is not authentic.
bool SealedSocket::open(Cursor& to) {
  while (to.left() > 0) {
    const SealedStream::Next next = stream_->next();
    if (next == SealedStream::Next::none) return true;
    if (next == SealedStream::Next::senseless || !stream_->head().payload) return false;
    const std::size_t bytes = stream_->head().content_bytes;
    if (to.piece().size() >= bytes) {
      if (!stream_->open(to.piece().first(bytes))) return false;
      to.advance(bytes);
      continue;
    }
    opened_.resize(bytes);
    if (!stream_->open(opened_)) return false;
    take_opened(to);
  }
  return true;
}

ssize_t SealedSocket::read(int socket, std::span<const iovec> parts) {
  static_cast<void>(flush(socket));  // the last bytes of this side's greeting; a read notices a broken connection
  Cursor to(parts);
  const std::size_t wanted = to.left();
  take_opened(to);
  while (to.left() > 0) {
    const auto room = room_of_thread();
    std::size_t have = stream_->take_kept(room);
    if (!stream_->keeps_record()) {
      const ssize_t got = ::recv(socket, room.data() + have, room.size() - have, MSG_DONTWAIT);
      if (got <= 0 && to.left() < wanted) break;
      if (got <= 0) return got;
      have += static_cast<std::size_t>(got);
    }
    stream_->begin_opening(room.first(have));
    const bool authentic = open(to);
    stream_->end_opening();
    if (!authentic) {
      errno = EBADMSG;
      return -1;
    }
  }
  return static_cast<ssize_t>(wanted - to.left());
}

}  // namespace tributary::transport
