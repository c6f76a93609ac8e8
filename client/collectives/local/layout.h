#pragma once
// The layout of the memory that the ranks of one host share.
//
//   header | per rank: progress, claims, regions | per pair: what is mapped | two notes per rank |
//   rows of chunks per rank: inputs | ... results
//
// Every byte has one writer, except some words of the header and the claims. Numbers only grow over the life of the
// group, so no rank ever resets a number or waits for a reset.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tributary/protocol/frame.h"

namespace tributary::client::local {

/// Two cache lines: the processor fetches lines in pairs, and one rank's writes must not take away a neighbour's line.
inline constexpr std::size_t kLineBytes = 128;
inline constexpr std::uint32_t kArenaMagic = 0x54724C32;  // "2LrT" in memory
inline constexpr std::size_t kFailureTextBytes = 1024;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "a lock would be this process's alone");

enum class FailureState : std::uint32_t { none, being_written, written };

struct ArenaHeader {
  std::uint32_t magic;
  std::uint32_t ranks;
  std::uint64_t note_bytes;
  std::uint64_t chunk_bytes;
  std::uint64_t depth;

  // The number of sleeping ranks. Every wait reads it; only a rank that goes to sleep or wakes up writes it.
  alignas(kLineBytes) std::atomic<std::uint32_t> sleepers;
  std::atomic<FailureState> failure;
  alignas(kLineBytes) std::atomic<std::uint32_t> wake;  // the futex word: counts how often a rank woke the sleepers

  alignas(kLineBytes) std::uint32_t failure_code;  // only the first rank that fails writes it
  char failure_text[kFailureTextBytes];

  // The bytes that the ranks of this host have sent to other hosts, by path. Only rank 0 writes them.
  alignas(kLineBytes) std::atomic<std::uint64_t> bytes_in_network;
  std::atomic<std::uint64_t> bytes_between_ranks;
};

/// A rank's progress, in chunks since the group began.
struct alignas(kLineBytes) ProgressLine {
  std::atomic<std::uint64_t> offered;  // its row has its inputs of all chunks below this
  std::atomic<std::uint64_t> reduced;  // its row has its results of all chunks below this; it has read their inputs
  std::atomic<std::uint64_t> taken;    // it has finished with all chunks below this
  std::atomic<std::uint32_t> gone;     // 1: the rank has left for good
  std::atomic<std::uint32_t> inside;   // 1: the rank may be reading or writing other ranks' buffers (direct.h)
  std::atomic<std::uint64_t> moved;    // pieces that the rank has moved between the ranks' buffers
  // The other ranks read the probe to find out whether they can reach this process's memory (attach.h).
  std::atomic<std::uint64_t> probe_at;
  std::uint64_t probe_value;  // written before probe_at
};
static_assert(sizeof(ProgressLine) == kLineBytes);

/// The next unclaimed piece of a slice. Any rank may take it, so that a rank without a core delays no other rank.
struct alignas(kLineBytes) ClaimLine {
  std::atomic<std::uint64_t> next;
};

/// The regions that a rank has announced for the other ranks to map (regions.h).
inline constexpr std::uint32_t kRegionsMax = 32;
struct alignas(kLineBytes) RegionLine {
  std::atomic<std::uint64_t> changes;
  std::atomic<std::uint32_t> generation[kRegionsMax];  // by place: the region's generation; 0: no region
};
/// The regions of one other rank that a rank has mapped.
struct alignas(kLineBytes) MappedLine {
  std::atomic<std::uint32_t> generation[kRegionsMax];
};

/// A rank's call, and its data if they are few. Each rank has two notes and uses them in turn, so it overwrites a note
/// two operations later. Every rank has read it by then: it reads a note before it writes its note for the operation
/// in between, and this rank has seen all those notes.
struct alignas(kLineBytes) Note {
  std::atomic<std::uint64_t> sequence;  // number of the operation, from 1; written last
  std::uint64_t count;
  std::uint32_t root;
  std::uint8_t collective, dtype, op, unused;
  std::byte few[40];  // few data, or a Reach (direct.h) if the data are many
  // Data that do not fit into `few` follow the note's head.
};
inline constexpr std::size_t kNoteHeadBytes = 64;
static_assert(offsetof(Note, few) + sizeof(Note::few) == kNoteHeadBytes);

/// The places in the memory. The class computes them from its sizes, so that they are the same for every rank.
class Layout {
 public:
  Layout(std::uint32_t ranks, std::size_t note_bytes, std::size_t chunk_bytes, std::size_t depth) noexcept
      : ranks_(ranks), note_bytes_(note_bytes), chunk_bytes_(chunk_bytes), depth_(depth) {
    const auto to_pages = [](std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
    progress_ = to_pages(sizeof(ArenaHeader));
    claims_ = progress_ + to_pages(ranks * sizeof(ProgressLine));
    regions_ = claims_ + to_pages(ranks * sizeof(ClaimLine));
    mapped_ = regions_ + to_pages(ranks * sizeof(RegionLine));
    notes_ = mapped_ + to_pages(std::size_t{ranks} * ranks * sizeof(MappedLine));
    note_stride_ = to_pages(kNoteHeadBytes + note_bytes);
    inputs_ = notes_ + std::size_t{2} * ranks * note_stride_;
    slice_ = slice_bytes_of(chunk_bytes, ranks);
    input_stride_ = to_pages(chunk_bytes);
    results_ = inputs_ + ranks * depth * input_stride_;
    result_stride_ = to_pages(slice_);
    bytes_ = results_ + ranks * depth * result_stride_;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t note_bytes() const noexcept { return note_bytes_; }
  [[nodiscard]] std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::size_t slice_bytes() const noexcept { return slice_; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

  [[nodiscard]] std::size_t progress(std::uint32_t rank) const noexcept {
    return progress_ + rank * sizeof(ProgressLine);
  }
  [[nodiscard]] std::size_t claims(std::uint32_t rank) const noexcept { return claims_ + rank * sizeof(ClaimLine); }
  [[nodiscard]] std::size_t regions(std::uint32_t rank) const noexcept { return regions_ + rank * sizeof(RegionLine); }
  [[nodiscard]] std::size_t mapped(std::uint32_t by, std::uint32_t of) const noexcept {
    return mapped_ + (std::size_t{of} * ranks_ + by) * sizeof(MappedLine);
  }
  [[nodiscard]] std::size_t note(std::uint32_t rank, std::uint64_t sequence) const noexcept {
    return notes_ + (std::size_t{2} * rank + sequence % 2) * note_stride_;
  }
  [[nodiscard]] std::size_t input(std::uint32_t rank, std::uint64_t chunk) const noexcept {
    return inputs_ + (rank * depth_ + chunk % depth_) * input_stride_;
  }
  [[nodiscard]] std::size_t result(std::uint32_t rank, std::uint64_t chunk) const noexcept {
    return results_ + (rank * depth_ + chunk % depth_) * result_stride_;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  /// Returns a whole number of cache lines, so that two ranks never write to the same line.
  static constexpr std::size_t slice_bytes_of(std::size_t chunk_bytes, std::uint32_t ranks) noexcept {
    return chunk_bytes / ranks / kLineBytes * kLineBytes;
  }

  std::uint32_t ranks_;
  std::size_t note_bytes_, chunk_bytes_, depth_;
  std::size_t progress_, claims_, regions_, mapped_, notes_, note_stride_, inputs_, input_stride_, results_,
      result_stride_, slice_, bytes_;
};

}  // namespace tributary::client::local
