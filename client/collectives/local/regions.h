#pragma once
// Buffers that the ranks of one host have announced to each other: every rank maps every other rank's buffers, once,
// and then reads and writes them as its own memory.
//
//   owner  -> each inbox    place, generation, size, and the descriptor of the file, over a Unix socket
//   owner  -> RegionLine    the generation at that place; `changes` says that the line has changed
//   others -> MappedLine    "this rank has mapped that generation"
//
// Each region has a new generation, so a late message cannot be mistaken for a message about the region that has the
// place now. A call uses a region only when all other ranks have mapped it. The other ranks drop a withdrawn region
// with their next long call, or at once if their communicator is idle.
//
// Trust: the ranks belong to one user and have proved the group's secret, so each rank trusts the other ranks to write
// only where a call's results belong. They could harm each other more with ptrace() anyway. Every rank still checks all
// lengths.
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/places.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client::local {

/// The place of a buffer in a rank's announced regions.
struct RegionPlace {
  std::uint32_t index = 0, generation = 0;
  std::uint64_t offset = 0;
};

/// The sockets over which ranks send each other file descriptors: the end to write to, for each rank; and this rank's
/// own end to read from.
struct Inboxes {
  std::vector<FileDescriptor> of;
  FileDescriptor own;
};
/// Makes both ends of one inbox.
[[nodiscard]] Result<std::pair<FileDescriptor, FileDescriptor>> make_inbox();

class Regions {
 public:
  Regions(std::shared_ptr<Arena> arena, const Places& places, std::uint32_t rank, std::uint32_t ranks,
          Inboxes inboxes) noexcept;

  // Any thread may call add(), remove() and find().
  /// Announces the range to all other ranks, and returns its generation for remove(). Errc::exhausted: kRegionsMax
  /// ranges are announced already.
  [[nodiscard]] Result<std::uint32_t> add(const void* address, transport::SharedRange range);
  /// Withdraws the range: no later call uses it.
  void remove(std::uint32_t generation) noexcept;
  /// Returns the range's place, if all other ranks have mapped it.
  [[nodiscard]] std::optional<RegionPlace> find(const void* address, std::size_t bytes) noexcept;

  // Only the thread that drives the group may call the other functions.
  /// Maps regions that other ranks have announced, and drops regions that they have withdrawn. Without changes it reads
  /// one word for each rank.
  void attend() noexcept;
  /// Returns the address of another rank's bytes in this process; nullptr: this rank has not mapped them.
  [[nodiscard]] std::byte* at(std::uint32_t rank, const RegionPlace& place, std::size_t bytes) const noexcept;
  /// Unmaps all regions of other ranks when the group is over.
  void close() noexcept { foreign_.clear(); }
  /// Returns the number of mapped regions of other ranks, for people and tests.
  [[nodiscard]] std::size_t mapped() const noexcept;

 private:
  struct Own {
    const std::byte* address = nullptr;
    transport::SharedRange range;
    std::uint32_t generation = 0;         // 0: the place is free
    std::vector<std::uint32_t> unsent{};  // ranks whose inbox was full
    bool everywhere = false;              // this rank has seen that all others have mapped it
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
  std::vector<std::uint64_t> seen_;  // by rank: the last value of `changes` that this rank read
  std::vector<Foreign> foreign_;
  mutable std::mutex mutex_;
  std::vector<Own> own_;          // guarded by mutex_
  std::uint32_t generation_ = 0;  // guarded by mutex_: the last generation given to a range
  bool unsent_ = false;           // guarded by mutex_: some range has `unsent` ranks
};

/// Keeps a range announced as long as this object lives. Any thread may use it.
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
