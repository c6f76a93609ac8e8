#include "transport/verbs/landing.h"

#include <arpa/inet.h>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

void Landing::make(std::uint32_t cells, std::uint32_t payload_bytes) {
  TRIBUTARY_ASSERT(!made() && cells > 0 && payload_bytes > 0,
                   "room for {} payloads of {} bytes is made beside {} cells", cells, payload_bytes, held_.size());
  cell_bytes_ = cell_bytes_for(payload_bytes);
  payload_bytes_ = payload_bytes;
  held_.resize(cells);
  memory_ = MappedMemory(cells * cell_bytes_);
}

Result<RemotePayload> Landing::open(Registrations& registrations, MemoryWindow& window, ibv_send_wr* work) {
  TRIBUTARY_ASSERT(made(), "the peer is told of room that was not made");
  if (!registration_) {
    auto registration = registrations.make(memory_.bytes(), Access::target);
    if (!registration) return std::unexpected(registration.error());
    registration_ = std::move(*registration);
  }
  RemotePayload where{.address = reinterpret_cast<std::uintptr_t>(memory_.bytes().data()),
                      .key = registration_->remote_key(),
                      .number = cells()};
  if (work == nullptr) return where;
  const auto key = window.bind(memory_.bytes(), *registration_, IBV_ACCESS_REMOTE_WRITE, *work);
  if (!key) return std::unexpected(key.error());
  where.key = *key;
  return where;
}

std::optional<Landing::Written> Landing::written(const CellImmediate& said, std::uint32_t bytes) noexcept {
  if (said.message_bytes < sizeof(MessagePrefix) || said.message_bytes > kCellMessageBytes ||
      bytes < said.message_bytes || bytes - said.message_bytes > payload_bytes_) {
    return std::nullopt;
  }
  if (!is_open() || said.cell != (written_ & kCellMask) || written_ - freed_ >= cells()) return std::nullopt;
  const auto cell = static_cast<std::uint32_t>(written_++ % cells());
  held_[cell] = 1;
  return Written{.number = cell, .payload_bytes = bytes - said.message_bytes};
}

void Landing::free(std::uint32_t cell) noexcept {
  TRIBUTARY_ASSERT(cell < held_.size(), "cell {} of {} is freed", cell, held_.size());
  held_[cell] = 0;
  while (freed_ != written_ && held_[freed_ % cells()] == 0) ++freed_;
}

bool Landing::free(const std::byte* payload) noexcept {
  if (!made() || payload < memory_.bytes().data() || payload >= memory_.bytes().data() + memory_.bytes().size())
    return false;
  free(static_cast<std::uint32_t>(static_cast<std::size_t>(payload - memory_.bytes().data()) / cell_bytes_));
  return true;
}

bool PeerLanding::open(const RemotePayload& where, std::uint32_t payload_bytes, std::uint32_t queue_pair) noexcept {
  TRIBUTARY_ASSERT(queue_pair < keys_.size(), "room is announced on queue pair {} of {}", queue_pair, keys_.size());
  if (where.number == 0 || where.number > kCellsMax || payload_bytes == 0 || payload_bytes > kSegmentBytesMax)
    return false;
  const bool known = cells_ != 0;
  if (known && (where.address != address_ || where.number != cells_ || payload_bytes != payload_bytes_)) return false;
  if (keys_[queue_pair]) return false;
  keys_[queue_pair] = where.key;
  address_ = where.address;
  cells_ = where.number;
  payload_bytes_ = payload_bytes;
  return true;
}

bool PeerLanding::freed_to(std::uint32_t count) noexcept {
  const std::uint32_t more = count - static_cast<std::uint32_t>(freed_);
  if (more > written_ - freed_) return false;
  freed_ += more;
  return true;
}

std::uint32_t PeerLanding::next_queue_pair() noexcept {
  TRIBUTARY_ASSERT(cells_ != 0, "a write to the room is prepared before the room was announced");
  do {
    last_queue_pair_ = (last_queue_pair_ + 1) % kQueuePairsMax;
  } while (!keys_[last_queue_pair_]);
  return last_queue_pair_;
}

void PeerLanding::write_next(ibv_send_wr& work, std::uint32_t queue_pair, std::uint32_t message_bytes,
                             std::uint32_t number) noexcept {
  TRIBUTARY_ASSERT(written_ - freed_ < cells_ && keys_[queue_pair] && message_bytes <= kCellMessageBytes,
                   "cell {} of {}, of which {} are free again, is written with a message of {} bytes", written_, cells_,
                   freed_, message_bytes);
  const std::uint64_t cell = written_ % cells_ * cell_bytes_for(payload_bytes_);
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(packed(
      CellImmediate{.message_bytes = message_bytes, .cell = static_cast<std::uint32_t>(written_), .number = number}));
  work.wr.rdma = {.remote_addr = address_ + cell + kCellMessageBytes - message_bytes, .rkey = *keys_[queue_pair]};
  ++written_;
}

}  // namespace tributary::transport::verbs
