#pragma once
// Buffers that the ranks of one host have announced to each other: every rank maps every other rank's, once, and then
// reads and writes it as its own memory.
//
//   owner  -> each inbox    place, generation, size, and the descriptor of the file, over a Unix socket
//   owner  -> RegionLine    the generation at that place; `changes` says that something is new
//   others -> MappedLine    "I have that generation mapped"
//
// A generation is used once, so nothing that is late can be taken for what has its place now. A region is used in a
// call only when all others have it; one that was taken back is dropped by the others with their next long call, and at
// once by those whose communicator is idle.
//
// What is trusted: processes of the same user, which have proved the group's secret, write only where a call's results
// belong. They could do more to each other with the debugger's calls anyway. Lengths are checked all the same.
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/places.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client::local {

/// Where a buffer lies in a rank's regions.
struct RegionPlace {
  std::uint32_t index = 0, generation = 0;
  std::uint64_t offset = 0;
};

/// How the ranks send each other descriptors: by rank the end that is written to; and this rank's own to read from.
struct Inboxes {
  std::vector<FileDescriptor> of;
  FileDescriptor own;
};
/// Both ends of one.
[[nodiscard]] Result<std::pair<FileDescriptor, FileDescriptor>> make_inbox();

class Regions {
 public:
  Regions(std::shared_ptr<Arena> arena, const Places& places, std::uint32_t rank, std::uint32_t ranks,
          Inboxes inboxes) noexcept;

  // Any thread.
  /// Announces the range to the others. The number is for remove(). Errc::exhausted: kRegionsMax are announced.
  [[nodiscard]] Result<std::uint32_t> add(const void* address, transport::SharedRange range);
  /// No call uses the range any more.
  void remove(std::uint32_t generation) noexcept;
  /// The range, if all others have it mapped.
  [[nodiscard]] std::optional<RegionPlace> find(const void* address, std::size_t bytes) noexcept;

  // Whoever drives the group.
  /// Maps and drops what the others have changed. Where nothing has changed it only looks.
  void attend() noexcept;
  /// Another rank's bytes here; nullptr: this rank has no such memory.
  [[nodiscard]] std::byte* at(std::uint32_t rank, const RegionPlace& place, std::size_t bytes) const noexcept;
  /// The group is over: nothing of other ranks stays mapped.
  void close() noexcept { foreign_.clear(); }
  /// Of other ranks, for people and tests.
  [[nodiscard]] std::size_t mapped() const noexcept;

 private:
  struct Own {
    const std::byte* address = nullptr;
    transport::SharedRange range;
    std::uint32_t generation = 0;         // 0: free
    std::vector<std::uint32_t> unsent{};  // ranks whose inbox was full
    bool everywhere = false;              // seen on all others
  };
  struct Foreign {
    std::uint32_t generation = 0;
    transport::ForeignMapping mapping;
  };
  void send(std::uint32_t index, Own& own) noexcept;
  void receive() noexcept;
  void drop_stale(std::uint32_t rank) noexcept;
  [[nodiscard]] bool is_everywhere(std::uint32_t index, const Own& own) const noexcept;
  [[nodiscard]] Foreign& foreign(std::uint32_t rank, std::uint32_t index) noexcept {
    return foreign_[std::size_t{rank} * kRegionsMax + index];
  }

  const std::shared_ptr<Arena> arena_;  // a range may be removed after the group's end
  const Places places_;
  const std::uint32_t rank_, ranks_;
  const Inboxes inboxes_;
  std::vector<std::uint64_t> seen_;  // by rank: of `changes`
  std::vector<Foreign> foreign_;
  mutable std::mutex mutex_;
  std::vector<Own> own_;          // under mutex_
  std::uint32_t generation_ = 0;  // under mutex_: the last that was given
  bool unsent_ = false;           // under mutex_
};

/// A range that is announced as long as this is there. Any thread.
class AnnouncedRange {
 public:
  [[nodiscard]] static Result<AnnouncedRange> announce(std::shared_ptr<Regions> regions, const void* address,
                                                       transport::SharedRange range);
  AnnouncedRange(AnnouncedRange&&) noexcept = default;
  AnnouncedRange& operator=(AnnouncedRange&&) = delete;
  ~AnnouncedRange() {
    if (regions_) regions_->remove(generation_);
  }

 private:
  AnnouncedRange(std::shared_ptr<Regions> regions, std::uint32_t generation) noexcept
      : regions_(std::move(regions)), generation_(generation) {}
  std::shared_ptr<Regions> regions_;
  std::uint32_t generation_;
};

}  // namespace tributary::client::local
