#pragma once
// The memory of one connection: each side's line of numbers, and a ring for each direction.
//
//   0     Side of the process that listened     written by that process only
//   128   Side of the process that connected    written by that process only
//   4096  ring to the process that connected
//   ...   ring to the process that listened
//
// The bytes of a ring have numbers that never start again; byte n lies at n modulo the ring's size. Every frame begins
// at a multiple of 64.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "tributary/protocol/error.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kRingBytesMin = 4096;
inline constexpr std::size_t kRingBytesMax = 64U << 20;

/// A writer publishes its position after this many bytes at the latest, so that both sides copy at the same time.
inline constexpr std::size_t kPublishBytes = 64U << 10;

[[nodiscard]] constexpr std::uint64_t whole_lines(std::uint64_t bytes) noexcept {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// One cache line with one writer. Its numbers only grow, and the reader checks each of them.
struct alignas(kLineBytes) Side {
  std::atomic<std::uint64_t> written;        // bytes put into the ring that this side fills
  std::atomic<std::uint64_t> read;           // bytes taken from the ring that this side empties
  std::atomic<std::uint64_t> room_at;        // this side waits for the other side to read up to here; kNoWait: no wait
  std::atomic<std::uint32_t> asleep;         // odd while this side's thread sleeps: a byte on the socket wakes it
  std::atomic<std::uint32_t> finished;       // 1: this side has written its last frame, so its end is no failure
  std::atomic<std::uint64_t> payloads_read;  // payloads that this side has read where they are
                                             // (region_line.h)
  std::atomic<std::uint32_t> withdrawn;      // 1: this side may change its lent payloads; later reads are void
};
static_assert(sizeof(Side) == kLineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

class RingMemory {
 public:
  enum class Role : std::uint8_t { listener, connector };

  /// Makes the memory, of huge pages if the system has set some aside and `huge` asks for them. A seal keeps every
  /// process from shortening the memory.
  [[nodiscard]] static Result<std::shared_ptr<RingMemory>> create(std::size_t ring_bytes, bool huge);
  /// Maps the memory that the listening process has made; called by the process that connected. Errc::corrupt if the
  /// memory is not sealed, or not long enough.
  [[nodiscard]] static Result<std::shared_ptr<RingMemory>> adopt(OwnedDescriptor descriptor, std::size_t ring_bytes);
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  /// The listener closes the memory once both sides have mapped it: from then on no process can map it again or take
  /// its pages away.
  [[nodiscard]] Status close_to_others();
  /// The connector then checks that the memory is closed, and closes the descriptor, too.
  [[nodiscard]] Status check_closed_to_others();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] std::size_t ring_bytes() const noexcept { return ring_bytes_; }
  [[nodiscard]] Side& mine() const noexcept { return side(role_); }
  [[nodiscard]] const Side& theirs() const noexcept { return side(other(role_)); }
  /// True if the other side has withdrawn its payloads. If it has not, all their bytes that were read before this call
  /// are valid.
  [[nodiscard]] bool theirs_withdrawn() const noexcept {
    // The processor could move a plain load before the reads of payloads. It cannot move this operation, which adds 0
    // and so keeps the writer's value.
    return side(other(role_)).withdrawn.fetch_or(0, std::memory_order_acq_rel) != 0;
  }
  [[nodiscard]] std::byte* outgoing() const noexcept { return ring(other(role_)); }
  [[nodiscard]] const std::byte* incoming() const noexcept { return ring(role_); }

 private:
  RingMemory(OwnedDescriptor descriptor, std::span<std::byte> bytes, std::size_t ring_bytes, Role role, bool huge)
      : descriptor_(std::move(descriptor)), bytes_(bytes), ring_bytes_(ring_bytes), role_(role), huge_(huge) {}
  [[nodiscard]] static Result<std::shared_ptr<RingMemory>> map(OwnedDescriptor descriptor, std::size_t bytes,
                                                               std::size_t ring_bytes, Role role, bool huge);
  [[nodiscard]] Status take_pages() noexcept;
  [[nodiscard]] static Role other(Role role) noexcept {
    return role == Role::listener ? Role::connector : Role::listener;
  }
  [[nodiscard]] Side& side(Role role) const noexcept;
  [[nodiscard]] std::byte* ring(Role reader) const noexcept;

  OwnedDescriptor descriptor_;  // the file; closed when no other process needs it
  std::span<std::byte> bytes_;
  std::size_t ring_bytes_;
  Role role_;
  bool huge_;
};

/// Copy bytes from and to a ring, at most as many as its size, and go on at its beginning when its end is reached.
void copy_in(std::byte* ring, std::size_t ring_bytes, std::uint64_t at, std::span<const std::byte> from) noexcept;
void copy_out(const std::byte* ring, std::size_t ring_bytes, std::uint64_t at, std::span<std::byte> to) noexcept;

}  // namespace tributary::transport
