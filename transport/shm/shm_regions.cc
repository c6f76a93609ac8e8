// Payloads that are not copied into the ring: the other side reads them in memory that this side has lent it. A
// line names the payload's place, and the frame's header follows. The frame takes only these two lines of the
// ring.
//
// The memory still belongs to its owner. A side that closes while its payloads may be unread says `withdrawn` first,
// and a reader checks for `withdrawn` after it has read. So a reader never uses bytes that changed meanwhile.
#include <algorithm>

#include "transport/shm/peer_text.h"
#include "transport/shm/shm_connection.h"
#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

// The bytes by which a `told` line shortens the reader's turn: mapping the range takes a few system calls.
constexpr std::size_t kTellingBytes = 64U << 10;
// Bytes of the widest element that is ever summed.
constexpr std::size_t kElementBytesMax = 8;

class Lent final : public KeptMemory {
 public:
  Lent(const std::shared_ptr<SocketCore>& core, std::shared_ptr<ShmPart> part, std::shared_ptr<LentRange> range)
      : core_(core), part_(std::move(part)), range_(std::move(range)) {}
  ~Lent() override {
    part_->lent.withdraw(range_);
    const auto core = core_.lock();
    if (core == nullptr) return;
    core->post([part = part_] {
      for (ShmConnection* connection : part->open) connection->look_at_regions();
    });
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  std::weak_ptr<SocketCore> core_;
  std::shared_ptr<ShmPart> part_;
  std::shared_ptr<LentRange> range_;
};

}  // namespace

std::unique_ptr<KeptMemory> lend_memory(const std::shared_ptr<SocketCore>& core, const std::shared_ptr<ShmPart>& part,
                                        const std::byte* address, SharedRange range) {
  return std::make_unique<Lent>(core, part, part->lent.lend(address, std::move(range)));
}

// ---- Functions of the side that owns the memory

void ShmConnection::write_line(const RegionLine& line) noexcept {
  TRIBUTARY_ASSERT(room() >= kLineBytes, "a line is written where {} bytes are free", room());
  copy_in(memory_->outgoing(), memory_->ring_bytes(), written_, std::as_bytes(std::span(&line, 1)));
  written_ += kLineBytes;
}

/// Returns false if the ring is full.
bool ShmConnection::write_region_words() noexcept {
  while (region_words_due()) {
    if (room() < kLineBytes) return false;
    if (const auto answer = std::exchange(regions_.answer, std::nullopt)) {
      write_line(*answer);
    } else if (const auto withdrawn = regions_.told.take_withdrawn()) {
      write_line(*withdrawn);
    }
  }
  return true;
}

/// Tries to name the payload of a frame before the frame's first byte is written. The first payload from a range makes
/// this side tell the other side of the range, and is still copied itself.
std::optional<RegionLine> ShmConnection::name_payload(const SendQueue::Next& next) {
  if (!next.borrowed || next.payload.size() < kInPlaceBytesMin) return std::nullopt;
  if (auto line = regions_.told.name(next.payload)) return line;
  if (state_ == State::open && room() >= 2 * kLineBytes) {
    if (const auto line = regions_.told.tell(part_->lent, next.payload, socket_.get())) write_line(*line);
  }
  return std::nullopt;
}

/// Returns false if the ring is full.
bool ShmConnection::write_named(const RegionLine& line, const SendQueue::Next& next, std::size_t& budget) {
  if (room() < 2 * kLineBytes) return false;
  TRIBUTARY_ASSERT(next.offset == 0, "a payload is named of which {} bytes are written", next.offset);
  write_line(line);
  copy_in(memory_->outgoing(), memory_->ring_bytes(), written_, next.header);
  written_ += kFrameHeaderBytes;
  named_.push_back(sends_written_);
  ++part_->statistics.frames_named;
  const std::size_t bytes = kFrameHeaderBytes + next.payload.size();
  part_->statistics.bytes_sent += bytes;
  sends_written_ += 1;
  part_->statistics.frames_sent += queue_.consume(bytes);
  budget -= std::min(budget, 2 * kLineBytes);
  return true;
}

/// Forgets the payloads that the other side has read.
void ShmConnection::look_for_payloads_read() {
  if (named_.empty()) return;
  const std::uint64_t read = memory_->theirs().payloads_read.load(std::memory_order_acquire);
  const std::uint64_t more = read - payloads_read_seen_;
  if (more > named_.size()) return position_cannot_be();
  named_.erase(named_.begin(), named_.begin() + static_cast<std::ptrdiff_t>(more));
  payloads_read_seen_ = read;
}

// ---- Functions of the side that reads the memory

bool ShmConnection::serve_region_line(const RegionLine& line, std::size_t& budget) {
  switch (line.word) {
    case RegionWord::payload:
      return serve_named(line, budget);
    case RegionWord::told:
      if (regions_.answer) {
        tell_corrupt("a message before its turn");
        return false;
      }
      map_region(line);
      budget -= std::min(budget, kTellingBytes);
      break;
    case RegionWord::withdrawn:
      regions_.mapped.drop(line);
      budget -= std::min(budget, kLineBytes);
      break;
    case RegionWord::mapped:
    case RegionWord::refused:
      if (regions_.told.answered(line)) {
        budget -= std::min(budget, kLineBytes);
        break;
      }
      [[fallthrough]];
    default:
      tell_corrupt("an impossible word");
      return false;
  }
  read_ += kLineBytes;
  return true;
}

/// Maps a range. The other side sends the descriptor before the line, so the descriptor is here.
void ShmConnection::map_region(const RegionLine& told) {
  while (!regions_.passed.is_open()) {
    std::array<std::byte, 1024> bells;
    if (receive_message(socket_.get(), bells, &regions_.passed) <= 0) break;
  }
  const OwnedDescriptor file = std::exchange(regions_.passed, {});
  const bool mapped = regions_.mapped.map(told, file, part_->settings.map_bytes_max);
  ++(mapped ? part_->statistics.regions_mapped : part_->statistics.regions_refused);
  regions_.answer = RegionLine{
      .word = mapped ? RegionWord::mapped : RegionWord::refused, .place = told.place, .generation = told.generation};
  make_due();  // an answer must be written
}

bool ShmConnection::serve_named(const RegionLine& line, std::size_t& budget) {
  if (written_seen_ - read_ < 2 * kLineBytes) return false;  // a correct peer publishes both lines at once
  FrameBytes bytes;
  copy_out(memory_->incoming(), memory_->ring_bytes(), read_ + kLineBytes, bytes);
  const auto header = decode(bytes);
  if (!header || header->payload_bytes != line.bytes) {
    tell_corrupt("a header that does not belong to its payload");
    return false;
  }
  const RegionsMapped::Bytes payload = regions_.mapped.find(line);
  if (payload.keeps == nullptr) {
    tell_corrupt("a place that does not exist");
    return false;
  }
  budget -= std::min(budget, kFrameHeaderBytes + payload.there.size());
  const bool aligned = reinterpret_cast<std::uintptr_t>(payload.there.data()) % kElementBytesMax == 0;
  if (aligned && handler_->takes_in_place(*channel_, *header)) {
    taken_.push_back({.payload = payload.there.data(), .given_back = false, .keeps = payload.keeps});
    reader_.take(*header, payload.there);
    read_ += 2 * kLineBytes;
    ++part_->statistics.frames_in_place;
    return deliver();
  }
  if (!place(*header)) return false;
  read_ += kLineBytes;
  std::ranges::copy(payload.there, reader_.rest().begin());
  reader_.land(payload.there.size());
  if (memory_->theirs_withdrawn()) {
    tell_closed({Errc::peer_gone, peer_text(peer_) + " closed the connection."});
    return false;
  }
  taken_.push_back({.payload = nullptr, .given_back = true, .keeps = nullptr});
  forget_taken();
  return deliver();
}

/// Gives back a payload that was read in the other side's memory. Returns false if `payload` is another kind of
/// payload.
bool ShmConnection::give_back_taken(const std::byte* payload) {
  const auto taken =
      std::ranges::find_if(taken_, [&](const Taken& t) { return t.payload == payload && !t.given_back; });
  if (taken == taken_.end()) return false;
  taken->given_back = true;
  taken->keeps = nullptr;
  forget_taken();
  if (state_ != State::open) return true;
  core_.make_dirty(*this);  // sends this with the answering frame, if there is one, so that one byte wakes the other
                            // side
  if (!withdrawn_seen_ && memory_->theirs_withdrawn()) {
    withdrawn_seen_ = true;
    fatal_ = Error{Errc::peer_gone, peer_text(peer_) + " closed the connection while this side read its memory."};
    make_due();
  }
  return true;
}

void ShmConnection::forget_taken() noexcept {
  const auto first_kept = std::ranges::find(taken_, false, &Taken::given_back);
  payloads_read_ += static_cast<std::uint64_t>(first_kept - taken_.begin());
  taken_.erase(taken_.begin(), first_kept);
}

void ShmConnection::publish_payloads_read() noexcept {
  if (payloads_read_ == payloads_read_told_) return;
  TRIBUTARY_ASSERT(payloads_read_ > payloads_read_told_, "{} payloads are read, and {} were told", payloads_read_,
                   payloads_read_told_);
  payloads_read_told_ = payloads_read_;
  memory_->mine().payloads_read.store(payloads_read_, std::memory_order_seq_cst);  // pairs with set_asleep()
  ring_bell_of(memory_->theirs());
}

}  // namespace tributary::transport
