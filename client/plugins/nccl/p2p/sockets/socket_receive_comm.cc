#include "client/plugins/nccl/p2p/sockets/socket_receive_comm.h"

#include <algorithm>
#include <cstring>

#include "client/plugins/nccl/log.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

// One system call reads a payload and bytes behind it; the bytes behind it are staged, and cost one more copy. With a
// payload of this size or more, the call reads only the next head behind it.
constexpr std::size_t kLargeBytes = std::size_t{16} << 10;

}  // namespace

SocketReceiveComm::SocketReceiveComm(std::shared_ptr<Engine> on, std::vector<StreamSocket> sockets,
                                     const SocketCounts& counts)
    : ReceiveComm(std::move(on)), dealer_(counts.sockets), first_(std::move(sockets.front())) {
  TRIBUTARY_ASSERT(sockets.size() == 1U + counts.sockets, "a connection of {} data sockets has {} sockets in all",
                   counts.sockets, sockets.size());
  for (Buffer& buffer : buffers_) {
    buffer.comm = this;
    free_.push_back(&buffer);
  }
  sockets.erase(sockets.begin());
  if (!sockets.empty()) helpers_.emplace(HelperThreads::Direction::receive, std::move(sockets), counts.threads);
}

abi::Result SocketReceiveComm::receive(void* data, std::size_t bytes, int tag, nccl::Request** request) {
  *request = nullptr;
  if (free_.empty()) return abi::Result::success;
  Buffer& buffer = *free_.back();
  free_.pop_back();
  TRIBUTARY_ASSERT(buffer.comm == this && buffer.pieces_left.load(std::memory_order_relaxed) == 0,
                   "a free buffer still has {} pieces under way", buffer.pieces_left.load(std::memory_order_relaxed));
  buffer.room = {static_cast<std::byte*>(data), bytes};
  buffer.tag = tag;
  buffer.begun = false;
  buffer.here = buffer.landed = 0;
  posted_.push_back(&buffer);
  *request = &buffer;
  return abi::Result::success;
}

void SocketReceiveComm::read_for(const Buffer& wanted) {
  while (ended_.empty() && take_staged()) {
    if (wanted.done()) return;  // if it waits for pieces, later messages can still begin
    if (!read_once()) {
      take_staged();
      return;
    }
  }
}

bool SocketReceiveComm::take_staged() {
  TRIBUTARY_ASSERT(staged_begin_ <= staged_end_ && staged_end_ <= staging_.size(), "staged bytes {} to {} of {}",
                   staged_begin_, staged_end_, staging_.size());
  while (true) {
    if (filling_ == nullptr) {
      if (staged() < kHeadBytes) return true;
      if (!begin_message()) return false;
    }
    if (filling_ == nullptr) continue;  // its bytes come on data sockets, or it has none
    const std::size_t piece = std::min(staged(), filling_->here - filling_->landed);
    if (piece == 0) return true;
    std::memcpy(filling_->room.data() + filling_->landed, staging_.data() + staged_begin_, piece);
    staged_begin_ += piece;
    land(piece);
  }
}

/// Reads the staged head. Returns false if no buffer is posted for its message, or if the bytes are no head.
bool SocketReceiveComm::begin_message() {
  TRIBUTARY_ASSERT(filling_ == nullptr && staged() >= kHeadBytes,
                   "a message begins with {} bytes of its head, or within another", staged());
  const auto bytes = std::span<const std::byte>(staging_).subspan(staged_begin_).first<kHeadBytes>();
  const auto head = decode_head(bytes);
  if (!head || head->number != next_number_) {
    end(first_.peer() + " sent " + (head ? "a message out of turn" : head.error().message) + ".");
    return false;
  }
  const auto at = std::ranges::find(posted_, head->tag, &Buffer::tag);
  if (at == posted_.end()) {
    if (const auto alive = first_.check(); !alive) end(alive.error().message);
    return false;
  }
  Buffer& buffer = **at;
  if (head->bytes > buffer.room.size()) {
    end(first_.peer() + " sent a message of " + std::to_string(head->bytes) +
        " bytes, longer than the buffer that was posted for it.");
    return false;
  }
  staged_begin_ += kHeadBytes;
  ++next_number_;
  posted_.erase(at);
  buffer.room = buffer.room.first(head->bytes);
  if (dealer_.deals(head->bytes)) {
    deal(buffer);
  } else if (head->bytes > 0) {
    buffer.here = head->bytes;
    filling_ = &buffer;
  }
  buffer.begun = true;
  return true;
}

void SocketReceiveComm::deal(Buffer& buffer) {
  buffer.pieces_left.store(dealer_.pieces_of(buffer.room.size()), std::memory_order_relaxed);
  TRIBUTARY_ASSERT(helpers_, "a message of {} bytes is dealt, but the connection has no data sockets",
                   buffer.room.size());
  if (helpers_->failed()) return;
  dealer_.deal(buffer.room.size(), [&](std::uint32_t socket, std::size_t at, std::size_t bytes) {
    helpers_->give(socket, {.data = buffer.room.data() + at, .bytes = bytes, .left = &buffer.pieces_left});
  });
}

bool SocketReceiveComm::read_once() {
  TRIBUTARY_ASSERT(staged() < kHeadBytes, "{} bytes are staged, and more are read", staged());
  if (staged_begin_ > 0) {
    std::memmove(staging_.data(), staging_.data() + staged_begin_, staged());
    staged_end_ -= staged_begin_;
    staged_begin_ = 0;
  }
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  const std::size_t rest = filling_ == nullptr ? 0 : filling_->here - filling_->landed;
  TRIBUTARY_ASSERT(rest == 0 || staged_end_ == 0, "{} bytes are staged before the rest of a payload", staged_end_);
  if (rest > 0) parts[count++] = {filling_->room.data() + filling_->landed, rest};
  const std::size_t behind = rest >= kLargeBytes ? kHeadBytes : staging_.size() - staged_end_;
  parts[count++] = {staging_.data() + staged_end_, behind};
  const auto got = first_.read(std::span(parts).first(count));
  if (!got) {
    end(got.error().message);
    return false;
  }
  TRIBUTARY_ASSERT(*got <= rest + behind, "the system gave {} bytes where {} fit", *got, rest + behind);
  staged_end_ += *got - std::min(*got, rest);
  if (rest > 0) land(std::min(*got, rest));
  return *got == rest + behind;
}

void SocketReceiveComm::land(std::size_t bytes) {
  TRIBUTARY_ASSERT(filling_ != nullptr && bytes <= filling_->here - filling_->landed,
                   "{} bytes land, more than the message still lacks", bytes);
  filling_->landed += bytes;
  if (filling_->landed == filling_->here) filling_ = nullptr;
}

bool SocketReceiveComm::is_lost(const Buffer& buffer) {
  if (helpers_ && helpers_->failed()) {
    helpers_->stop();
    if (ended_.empty()) end(helpers_->failure());  // close the first socket, too: the other end notices
    return true;
  }
  return !ended_.empty() && (!buffer.begun || buffer.landed < buffer.here);
}

abi::Result SocketReceiveComm::Buffer::test(int* finished, int* sizes) {
  if (!done()) comm->read_for(*this);
  const bool over = done();
  *finished = over ? 1 : 0;
  if (!over && !comm->is_lost(*this)) {
    comm->engine().settle();
    return abi::Result::success;
  }
  TRIBUTARY_ASSERT(comm->free_.size() < comm->buffers_.size(), "all {} buffers are free already",
                   comm->buffers_.size());
  comm->free_.push_back(this);
  if (over) {
    if (sizes != nullptr) *sizes = static_cast<int>(room.size());
    return abi::Result::success;
  }
  std::erase(comm->posted_, this);
  if (comm->filling_ == this) comm->filling_ = nullptr;
  pieces_left.store(0, std::memory_order_relaxed);  // safe: the helpers have stopped, or never had a piece of it
  warn("a message of up to " + std::to_string(room.size()) + " bytes did not come: " + comm->ended_);
  return abi::Result::remote_error;
}

}  // namespace tributary::nccl
