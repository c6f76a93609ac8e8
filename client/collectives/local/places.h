#pragma once
// The memory that the ranks of a host share, as addresses.
#include "client/collectives/local/layout.h"

namespace tributary::client::local {

class Places {
 public:
  Places(std::byte* base, const Layout& layout) noexcept : base_(base), layout_(layout) {}
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] ArenaHeader& header() const noexcept { return *reinterpret_cast<ArenaHeader*>(base_); }
  [[nodiscard]] ProgressLine& progress(std::uint32_t rank) const noexcept {
    return *reinterpret_cast<ProgressLine*>(base_ + layout_.progress(rank));
  }
  [[nodiscard]] ClaimLine& claims(std::uint32_t rank) const noexcept {
    return *reinterpret_cast<ClaimLine*>(base_ + layout_.claims(rank));
  }
  [[nodiscard]] RegionLine& regions(std::uint32_t rank) const noexcept {
    return *reinterpret_cast<RegionLine*>(base_ + layout_.regions(rank));
  }
  [[nodiscard]] MappedLine& mapped(std::uint32_t by, std::uint32_t of) const noexcept {
    return *reinterpret_cast<MappedLine*>(base_ + layout_.mapped(by, of));
  }
  [[nodiscard]] Note& note(std::uint32_t rank, std::uint64_t sequence) const noexcept {
    return *reinterpret_cast<Note*>(base_ + layout_.note(rank, sequence));
  }
  /// Returns the place of the `bytes` of data that travel with a note.
  [[nodiscard]] std::byte* noted(std::uint32_t rank, std::uint64_t sequence, std::size_t bytes) const noexcept {
    Note& of = note(rank, sequence);
    return bytes <= sizeof(Note::few) ? of.few : reinterpret_cast<std::byte*>(&of) + kNoteHeadBytes;
  }
  [[nodiscard]] std::byte* input(std::uint32_t rank, std::uint64_t chunk) const noexcept {
    return base_ + layout_.input(rank, chunk);
  }
  [[nodiscard]] std::byte* result(std::uint32_t rank, std::uint64_t chunk) const noexcept {
    return base_ + layout_.result(rank, chunk);
  }

 private:
  std::byte* base_;
  Layout layout_;
};

}  // namespace tributary::client::local
