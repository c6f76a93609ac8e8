#include "client/plugins/nccl/p2p/sockets/socket_send_comm.h"

#include <algorithm>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/settings.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

constexpr std::size_t kMessagesPerCall = 32;

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // the system only reads these bytes
}

}  // namespace

SocketSendComm::SocketSendComm(std::shared_ptr<Engine> on, const NetHandle& to)
    : SendComm(std::move(on)), counts_(to.counts), dealer_(to.counts.sockets) {
  for (Message& message : messages_) {
    message.comm = this;
    free_.push_back(&message);
  }
  settling_.emplace(shared_engine());
  const auto lock = engine().lock();
  connecting_.emplace(engine(), to, settings().connect_limit);
}

SocketSendComm::~SocketSendComm() {
  if (!connecting_) return;
  const auto lock = engine().lock();
  connecting_.reset();
}

SendComm::Opening SocketSendComm::opening() {
  TRIBUTARY_ASSERT(connecting_, "a connection to {} is asked for its stage after it has opened", first_->peer());
  const auto lock = engine().lock();
  engine().poll();
  switch (connecting_->stage()) {
    case ConnectingSockets::Stage::under_way:
      return Opening::under_way;
    case ConnectingSockets::Stage::ready:
      open();
      return Opening::open;
    case ConnectingSockets::Stage::failed:
      break;
  }
  warn("cannot connect: " + connecting_->failure());
  return Opening::failed;
}

void SocketSendComm::open() {
  auto sockets = connecting_->take();
  TRIBUTARY_ASSERT(sockets.size() == 1U + counts_.sockets, "a connection of {} data sockets has {} sockets in all",
                   counts_.sockets, sockets.size());
  first_.emplace(std::move(sockets.front()));
  sockets.erase(sockets.begin());
  if (!sockets.empty()) helpers_.emplace(HelperThreads::Direction::send, std::move(sockets), counts_.threads);
  connecting_.reset();
  settling_.reset();
}

abi::Result SocketSendComm::send(const void* data, std::size_t bytes, int tag, nccl::Request** request) {
  *request = nullptr;
  if (bytes > kBytesMax) return abi::Result::invalid_argument;  // the properties allow no more
  if (free_.empty()) {
    write_queued();
    return abi::Result::success;
  }
  const bool alone = free_.size() == messages_.size();
  Message& message = *free_.back();
  free_.pop_back();
  TRIBUTARY_ASSERT(message.comm == this && message.pieces_left.load(std::memory_order_relaxed) == 0,
                   "a free message still has {} pieces under way", message.pieces_left.load(std::memory_order_relaxed));
  const std::span whole(static_cast<const std::byte*>(data), bytes);
  message.head = encode(MessageHead{.number = next_number_++, .bytes = static_cast<std::uint32_t>(bytes), .tag = tag});
  message.bytes = bytes;
  message.written = 0;
  message.here = dealer_.deals(bytes) ? std::span<const std::byte>() : whole;
  to_write_.push_back(&message);
  if (dealer_.deals(bytes)) deal(message, whole);
  // Write the message at once if it is large, or if no other message is unfinished. Otherwise NCCL will soon call
  // test() for an earlier message, and that call writes this message, too.
  if (alone || bytes >= kPieceBytesMin) write_queued();
  *request = &message;
  return abi::Result::success;
}

void SocketSendComm::deal(Message& message, std::span<const std::byte> data) {
  message.pieces_left.store(dealer_.pieces_of(data.size()), std::memory_order_relaxed);
  if (failed()) return;
  TRIBUTARY_ASSERT(helpers_, "a message of {} bytes is dealt, but the connection has {} data sockets", data.size(),
                   counts_.sockets);
  dealer_.deal(data.size(), [&](std::uint32_t socket, std::size_t at, std::size_t bytes) {
    auto* const from = const_cast<std::byte*>(data.data() + at);  // the helper only reads these bytes
    helpers_->give(socket, {.data = from, .bytes = bytes, .left = &message.pieces_left});
  });
}

std::size_t SocketSendComm::room() {
  if (window_.surely_has(kPieceBytesMin)) return window_.room();
  if (window_.wants_round_trip()) window_.note_round_trip(first_->shortest_round_trip());
  window_.note_under_way(first_->under_way());
  return window_.room();
}

std::span<iovec> SocketSendComm::gather(std::span<iovec> into, std::size_t bytes_max) const {
  std::size_t count = 0;
  const auto add = [&](std::span<const std::byte> bytes) {
    const auto part = bytes.first(std::min(bytes.size(), bytes_max));
    if (!part.empty()) into[count++] = part_of(part);
    bytes_max -= part.size();
  };
  for (const Message* message : to_write_) {
    if (bytes_max == 0 || count + 2 > into.size()) break;
    const std::size_t head = message->head.size();
    TRIBUTARY_ASSERT(message->written < head + message->here.size(),
                     "a message of which {} of {} bytes are written still waits", message->written,
                     head + message->here.size());
    if (message->written < head) add(std::span(message->head).subspan(message->written));
    add(message->here.subspan(std::max(message->written, head) - head));
  }
  TRIBUTARY_ASSERT(count <= into.size(), "{} parts are gathered where {} fit", count, into.size());
  return into.first(count);
}

void SocketSendComm::write_queued() {
  while (!failed_ && !to_write_.empty()) {
    std::array<iovec, 2 * kMessagesPerCall> parts;
    const auto gathered = gather(parts, room());
    if (gathered.empty()) return look_for_end();
    std::size_t bytes = 0;
    for (const iovec& part : gathered) bytes += part.iov_len;
    const auto wrote = first_->write(gathered);
    if (!wrote) return fail(wrote.error().message);
    TRIBUTARY_ASSERT(*wrote <= bytes, "the system took {} of {} bytes", *wrote, bytes);
    note_written(*wrote);
    if (*wrote < bytes) return;
  }
}

/// Looks for a broken connection while the window is full. In this state no write could notice it.
void SocketSendComm::look_for_end() {
  if (const auto alive = first_->check(); !alive) fail(alive.error().message);
}

void SocketSendComm::note_written(std::size_t bytes) {
  window_.note_written(bytes);
  while (bytes > 0) {
    TRIBUTARY_ASSERT(!to_write_.empty(), "{} bytes were written that belong to no message", bytes);
    Message& message = *to_write_.front();
    const std::size_t rest = message.head.size() + message.here.size() - message.written;
    message.written += std::min(bytes, rest);
    if (bytes < rest) return;
    bytes -= rest;
    to_write_.pop_front();
  }
}

bool SocketSendComm::failed() {
  if (!failed_ && helpers_ && helpers_->failed()) fail(helpers_->failure());
  return failed_;
}

void SocketSendComm::fail(const std::string& why) {
  failed_ = true;
  failure_ = why;
  first_->close();
  if (helpers_) helpers_->stop();
}

abi::Result SocketSendComm::Message::test(int* finished, int* sizes) {
  if (!done()) comm->write_queued();
  const bool over = done();
  *finished = over ? 1 : 0;
  if (!over && !comm->failed()) {
    comm->engine().settle();
    return abi::Result::success;
  }
  TRIBUTARY_ASSERT(comm->free_.size() < comm->messages_.size(), "all {} messages are free already",
                   comm->messages_.size());
  comm->free_.push_back(this);
  if (over) {
    if (sizes != nullptr) *sizes = static_cast<int>(bytes);
    return abi::Result::success;
  }
  std::erase(comm->to_write_, this);
  pieces_left.store(0, std::memory_order_relaxed);  // safe: the helpers have stopped
  warn("a message of " + std::to_string(bytes) + " bytes was not sent: " + comm->failure_);
  return abi::Result::remote_error;
}

}  // namespace tributary::nccl
