#pragma once
// The copies and reductions of one rank in a collective: a pure function of the call. Ranks of one host exchange data
// in two ways, and this class knows the places for both:
//
//   notes    few data: every rank writes its input into its note, once, and makes its result from all notes
//   chunks   many data: every rank copies a chunk of its input into its row; reduces its slice of the chunk from all
//            rows; copies the other slices' results out. Chunks follow each other closely, and are small enough to
//            stay in a core's own cache between being written and being read.
//
// Contributions are always combined in the order of the ranks, each slice by one rank, so all ranks get the same bits.
#include <cstddef>
#include <cstdint>

#include "client/collectives/local/places.h"
#include "tributary/protocol/frame.h"

namespace tributary::client::local {

/// One rank's part in one collective. The buffers belong to the caller again when the call has ended.
struct Call {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;  // broadcast: null on a rank that needs no result
  bool in_place = false;
  bool plain_memory = true;  // other processes may reach it directly: no device's memory, nor memory pinned for one
  std::uint64_t number = 0;  // in the communicator's order of calls, for messages
};

class Movement {
 public:
  Movement() = default;
  Movement(const Call& call, std::uint32_t rank, std::uint32_t ranks, const Layout& layout) noexcept;

  /// True: by notes; false: by chunks. The same on every rank that made the same call.
  [[nodiscard]] bool by_notes() const noexcept { return by_notes_; }
  /// Returns the most bytes that any rank offers.
  [[nodiscard]] std::size_t offered_bytes() const noexcept { return offered_bytes_; }
  [[nodiscard]] bool offers() const noexcept { return offers_; }
  [[nodiscard]] bool wants() const noexcept { return wants_; }
  void write_note(std::byte* into) const noexcept;
  /// Makes this rank's result from the notes, once all are there.
  void read_notes(const Places& places, std::uint64_t sequence) const noexcept;

  [[nodiscard]] std::uint64_t chunks() const noexcept { return chunks_; }
  /// Return whether any rank has work in the chunk's second step (reduces) and in its third (takes).
  [[nodiscard]] bool reduces() const noexcept { return reduces_; }
  [[nodiscard]] bool takes() const noexcept { return takes_; }
  // The functions below work on this call's chunk `index`, which lies in the rows at the place of `chunk`.
  void offer(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;
  void reduce(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;
  void take(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept;

 private:
  /// Elements of a slice. `begin` counts in the vector that is sliced: the part, for collectives with a part per rank.
  struct Slice {
    std::uint64_t begin = 0, count = 0;
  };
  /// How a chunk of the collective is made up.
  enum class Shape : std::uint8_t {
    sliced,  // a slice of one vector for each rank, one after the other
    parts,   // a slice of each rank's part
    whole,   // one slice, of the vector that a rank has
  };
  [[nodiscard]] Slice slice(std::uint64_t index, std::uint32_t of) const noexcept;
  /// Returns the place where a slice begins in the buffer that has the slices of all ranks.
  [[nodiscard]] std::uint64_t place_of(const Slice& slice, std::uint32_t of) const noexcept;
  [[nodiscard]] std::size_t row_offset(std::uint32_t of) const noexcept { return of * slice_elements_ * element_; }
  /// Copies to the caller's buffer.
  void deliver(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
  void copy_own_part(std::uint64_t begin, std::uint64_t count) const noexcept;
  template <class Input>
  void combine(Input input, std::byte* out, std::uint64_t count) const noexcept;

  Call call_;
  std::uint32_t rank_ = 0, ranks_ = 1;
  std::size_t element_ = 1;
  std::size_t offered_bytes_ = 0;
  Shape shape_ = Shape::whole;
  bool by_notes_ = true, reduces_ = false, takes_ = false;
  bool streams_ = false;
  bool offers_ = false, wants_ = false;  // whether this rank offers, and wants
  std::uint64_t slice_elements_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace tributary::client::local
