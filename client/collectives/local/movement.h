#pragma once
// The copies and reductions of one rank in a collective: a pure function of the call. Ranks of one host exchange data
// in two ways, and this class knows the places of the data for both ways:
//
//   notes    few data: every rank writes its input into its note, once, and makes its result from all notes
//   chunks   many data: every rank copies a chunk of its input into its row, reduces its slice of the chunk from all
//            rows, and copies the other slices' results out. Chunks follow each other closely, and are so small that
//            they stay in a core's own cache from the write to the read.
//
// Contributions are always combined in the order of the ranks, each slice by one rank, so all ranks get the same bits.
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/collectives/local/places.h"
#include "tributary/protocol/frame.h"

namespace tributary::client::local {

/// One rank's part in one collective. The buffers belong to the caller again when the call has ended.
struct Call {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;  // broadcast: nullptr on a rank that needs no result
  bool in_place = false;
  bool plain_memory = true;  // no buffer is in a device's memory or pinned for it: other ranks may reach both buffers
  std::uint64_t number = 0;  // number in the communicator's order of calls, for messages
};

class Movement {
 public:
  Movement() = default;
  /// `inputs` has a place for each rank, which exact sums use; it must outlive the movement.
  Movement(const Call& call, std::uint32_t rank, std::uint32_t ranks, const Layout& layout,
           std::span<const void*> inputs) noexcept;

  /// True: the data go by notes; false: they go by chunks. The answer is the same on every rank that made the same
  /// call.
  [[nodiscard]] bool by_notes() const noexcept { return by_notes_; }
  /// Returns the number of bytes that a rank offers; the maximum over all ranks.
  [[nodiscard]] std::size_t offered_bytes() const noexcept { return offered_bytes_; }
  [[nodiscard]] bool offers() const noexcept { return offers_; }
  [[nodiscard]] bool wants() const noexcept { return wants_; }
  void write_note(std::byte* into) const noexcept;
  /// Makes this rank's result from the notes, once all are there.
  void read_notes(const Places& places, std::uint64_t sequence) const noexcept;

  [[nodiscard]] std::uint64_t chunks() const noexcept { return chunks_; }
  /// Return whether any rank has work in the chunk's second step, reduce(), and in its third step, take().
  [[nodiscard]] bool reduces() const noexcept { return reduces_; }
  [[nodiscard]] bool takes() const noexcept { return takes_; }
  // The functions below work on this call's chunk `index`, which lies in the rows at the place of `chunk`.
  void offer(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;
  void reduce(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;
  void take(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;

 private:
  /// The elements of a slice. `begin` counts from the start of the vector that is cut into slices: this is a rank's
  /// part if the collective has a part for each rank.
  struct Slice {
    std::uint64_t begin = 0, count = 0;
  };
  /// The content of a chunk of the collective.
  enum class Shape : std::uint8_t {
    sliced,  // for each rank a slice of one vector, one after the other
    parts,   // a slice of each rank's part
    whole,   // one slice of the vector that one rank has
  };
  [[nodiscard]] Slice slice(std::uint64_t index, std::uint32_t of) const noexcept;
  /// Returns the place where a slice begins in the buffer that has the slices of all ranks.
  [[nodiscard]] std::uint64_t place_of(const Slice& slice, std::uint32_t of) const noexcept;
  [[nodiscard]] std::size_t row_offset(std::uint32_t of) const noexcept { return of * slice_elements_ * element_; }
  /// Copies a part of the result to the caller's buffer.
  void deliver(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
  void copy_own_part(std::uint64_t begin, std::uint64_t count) const noexcept;
  template <class Input>
  void combine(Input input, std::byte* out, std::uint64_t count) const noexcept;

  Call call_;
  std::span<const void*> inputs_;
  std::uint32_t rank_ = 0, ranks_ = 1;
  std::size_t element_ = 1;
  std::size_t offered_bytes_ = 0;
  Shape shape_ = Shape::whole;
  bool by_notes_ = true, reduces_ = false, takes_ = false;
  bool streams_ = false;
  bool offers_ = false, wants_ = false;  // this rank offers data; this rank wants a result
  std::uint64_t slice_elements_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace tributary::client::local
