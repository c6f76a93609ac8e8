#pragma once
// Memory windows (type 2) of one queue pair. A window lets only the other end of that queue pair reach exactly the
// bytes to which it is bound, until it is revoked. Each bind gives it another key.
#include <cstdint>
#include <span>
#include <vector>

#include "transport/verbs/registrations.h"
#include "transport/verbs/resources.h"

namespace tributary::transport::verbs {

/// One window, which prepare() makes when it is first needed.
class MemoryWindow {
 public:
  MemoryWindow() = default;
  /// Makes the window, in the queue pair's domain.
  void open(ibv_pd& domain, VerbsStatistics& statistics) noexcept {
    domain_ = &domain;
    statistics_ = &statistics;
  }
  /// Revokes the window. The queue pair must have stopped.
  void close() noexcept;
  ~MemoryWindow() { close(); }
  MemoryWindow(MemoryWindow&& other) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) = delete;

  /// Makes `work` bind the window to this memory. The window must not be bound. Returns the key.
  [[nodiscard]] Result<std::uint32_t> bind(std::span<const std::byte> memory, const Registration& registration,
                                           unsigned rights, ibv_send_wr& work);
  /// Makes `work` revoke the window.
  void revoke(ibv_send_wr& work) noexcept;

 private:
  ibv_pd* domain_ = nullptr;
  VerbsStatistics* statistics_ = nullptr;
  MemoryWindowPtr window_;
  std::uint32_t key_ = 0;  // key of the last bind
};

/// The windows of payloads that the peer reads. Payloads are offered, fetched and freed in the same order, so the
/// windows form a ring with three marks, freed <= revoking <= bound; bound - freed is at most the number of windows.
class MemoryWindows {
 public:
  /// Makes room for this number of windows, which is a power of two or 0. Each window is made when it is first needed,
  /// in the queue pair's domain.
  void open(ibv_pd& domain, std::uint32_t count, VerbsStatistics& statistics);
  /// Revokes all windows. The queue pair must have stopped.
  void close() noexcept;
  ~MemoryWindows() { close(); }

  /// True if payloads are offered through windows.
  [[nodiscard]] bool in_use() const noexcept { return !ring_.empty(); }
  [[nodiscard]] bool has_free() const noexcept { return bound_ - freed_ < ring_.size(); }
  /// Makes `work` bind the next window, which must be free, to this memory; returns the key.
  [[nodiscard]] Result<std::uint32_t> bind(std::span<const std::byte> memory, const Registration& registration,
                                           ibv_send_wr& work);
  /// Makes `work` revoke the oldest window that is bound and not being revoked. `position` is the work's position in
  /// the send queue.
  void revoke(ibv_send_wr& work, std::uint32_t position) noexcept;
  /// Notes that all work of the send queue up to `position` is done. Returns the number of windows that became free.
  [[nodiscard]] std::uint32_t done_to(std::uint32_t position) noexcept;

  /// A mark for code that waits until all windows that are being revoked now are revoked.
  [[nodiscard]] std::uint32_t revoking() const noexcept { return revoking_; }
  [[nodiscard]] bool is_revoked(std::uint32_t revoking) const noexcept {
    return static_cast<std::int32_t>(freed_ - revoking) >= 0;
  }

 private:
  struct Entry {
    MemoryWindow window;
    std::uint32_t revoked_at = 0;
  };
  [[nodiscard]] Entry& at(std::uint32_t number) noexcept { return ring_[number % ring_.size()]; }

  std::vector<Entry> ring_;  // its size is a power of two, so that the marks may wrap
  std::uint32_t freed_ = 0;
  std::uint32_t revoking_ = 0;
  std::uint32_t bound_ = 0;
};

}  // namespace tributary::transport::verbs
