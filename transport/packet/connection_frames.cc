// Turns the stream into frames. The handler gives each payload's place, and this code copies the payload there from the
// packet, once. If one packet has the whole payload and the port can spare the buffer, the handler may take the payload
// where it lies.
#include <algorithm>
#include <cstring>
#include <functional>

#include "transport/packet/connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

namespace {

constexpr std::size_t kInPlaceBytesMin = 512;  // copying a shorter payload is faster than keeping it
/// on_frame gives every payload as writable bytes; a handler that takes a payload in place must not write to it.
std::span<std::byte> writable(std::span<const std::byte> payload) noexcept {
  return {const_cast<std::byte*>(payload.data()), payload.size()};
}

}  // namespace

std::size_t PacketConnection::take(std::span<const std::byte> bytes) {
  if (state_ == State::flushing) return bytes.size();  // the handler reads no more frames, so all bytes are skipped
  std::size_t taken = 0;
  while (serving()) {
    if (!reader_.in_frame()) {
      if (!may_go(core_.round())) {  // the stream keeps the rest, and the other side gets no credit for more
        make_due();
        break;
      }
      if (header_landed_ == 0 && bytes.size() - taken >= kFrameHeaderBytes && !reader_.stalled()) {  // read where it is
        const auto rest = bytes.subspan(taken);
        taken += kFrameHeaderBytes;
        if (!place_next(rest.first<kFrameHeaderBytes>(), rest.subspan(kFrameHeaderBytes))) {
          std::memcpy(header_bytes_.data(), rest.data(), kFrameHeaderBytes);  // on_header may be called again
          header_landed_ = kFrameHeaderBytes;
          break;
        }
      } else {
        TRIBUTARY_ASSERT(header_landed_ <= kFrameHeaderBytes, "{} bytes of a header have landed", header_landed_);
        const std::size_t piece = std::min(bytes.size() - taken, kFrameHeaderBytes - header_landed_);
        if (piece > 0) std::memcpy(header_bytes_.data() + header_landed_, bytes.data() + taken, piece);
        header_landed_ += piece;
        taken += piece;
        if (header_landed_ < kFrameHeaderBytes || reader_.stalled() || !place_next(header_bytes_, bytes.subspan(taken)))
          break;
      }
    }
    if (reader_.whole()) {  // the frame has no payload, or its payload stays in the packet
      taken += reader_.payload().size();
      deliver();
      continue;
    }
    const std::span<std::byte> rest = reader_.rest();
    const std::size_t piece = std::min(bytes.size() - taken, rest.size());
    if (piece > 0) std::memcpy(rest.data(), bytes.data() + taken, piece);
    reader_.land(piece);
    taken += piece;
    if (!reader_.whole()) break;
    deliver();
  }
  TRIBUTARY_ASSERT(taken <= bytes.size(), "{} of {} bytes were taken", taken, bytes.size());
  if (taken > 0) spend(taken, kTurnBytesOfPacket);
  return taken;
}

bool PacketConnection::take_frame(const Arrival& arrival) {
  const std::span<const std::byte> bytes = arrival.payload;
  if (bytes.size() < kFrameHeaderBytes + kInPlaceBytesMin || !between_frames() || !flow_.expects(arrival)) return false;
  if (!may_go(core_.round())) return false;
  const auto header = decode(bytes.first<kFrameHeaderBytes>());
  if (!header || kFrameHeaderBytes + header->payload_bytes != bytes.size()) return false;
  const auto payload = bytes.subspan(kFrameHeaderBytes);
  if (!keep(*header, payload.data())) return false;
  flow_.take_expected(arrival, core_.now());
  spend(bytes.size(), kTurnBytesOfPacket);
  core_.make_touched(*this);
  ++core_.statistics.frames_received;
  core_.count_callback();
  handler_->on_frame(*channel_, *header, writable(payload));
  return true;
}

/// Keeps a payload that lies whole in the packet that is being read. `behind`: the bytes behind the frame's header.
bool PacketConnection::keep_in_place(const FrameHeader& header, std::span<const std::byte> behind) {
  if (header.payload_bytes < kInPlaceBytesMin || behind.size() < header.payload_bytes) return false;
  const ReceivedPacket* const packet = core_.being_read();
  if (packet == nullptr) return false;
  const std::less<const std::byte*> before;  // the bytes may have come in an earlier packet and lie elsewhere
  const std::byte* const packet_end = packet->bytes.data() + packet->bytes.size();
  if (before(behind.data(), packet->bytes.data()) || !before(behind.data(), packet_end)) return false;
  if (!keep(header, behind.data())) return false;
  reader_.take(header, behind.first(header.payload_bytes));
  return true;
}

/// Keeps the buffer of the packet that is being read, which has the payload, if the port can spare the buffer and the
/// handler takes the payload in place.
bool PacketConnection::keep(const FrameHeader& header, const std::byte* payload) {
  TRIBUTARY_ASSERT(core_.being_read() != nullptr, "a payload from {} is kept in no packet", peer_);
  void* const buffer = core_.being_read()->buffer;
  if (buffer == nullptr || !core_.port().keep(buffer)) return false;
  if (!handler_->takes_in_place(*channel_, header)) {
    core_.port().give_back(buffer);
    return false;
  }
  kept_.push_back({payload, buffer});
  ++core_.statistics.frames_in_place;
  return true;
}

void PacketConnection::give_back(std::span<const std::byte> payload) {
  std::size_t at = 0;  // the entry is mostly the first one
  while (at < kept_.size() && kept_[at].payload != payload.data()) ++at;
  if (at == kept_.size()) return;
  core_.port().give_back(kept_[at].buffer);
  for (; at > 0; --at) kept_[at] = kept_[at - 1];
  kept_.pop_front();
}

/// Asks the handler where the payload of the received header goes. Returns false if reading must stop, because the
/// handler answers NotYet or the channel is closed.
bool PacketConnection::place_next(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                  std::span<const std::byte> behind) {
  const auto header = decode(bytes);
  if (!header) {
    ++core_.statistics.frame_rejects[static_cast<std::size_t>(header.error())];
    tell_closed(corrupt_frame(peer_, header.error()));
    return false;
  }
  const bool in_place = keep_in_place(*header, behind);
  if (!serving() || (!in_place && !reader_.place(*this, *header))) return false;
  header_landed_ = 0;
  return true;
}

void PacketConnection::deliver() {
  ++core_.statistics.frames_received;
  static_cast<void>(reader_.deliver(*this));
}

void PacketConnection::tell_sent() {
  while (serving() && handler_ != nullptr) {
    const auto cookie = flow_.frames().next_sent();
    if (!cookie) return;
    core_.count_callback();
    handler_->on_sent(*channel_, *cookie);
  }
}

}  // namespace tributary::transport::packet
