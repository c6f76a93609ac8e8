#include "transport/verbs/memory_windows.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

void MemoryWindow::close() noexcept {
  if (window_) --statistics_->memory_windows;
  window_.reset();
}

Result<std::uint32_t> MemoryWindow::bind(std::span<const std::byte> memory, const Registration& registration,
                                         unsigned rights, ibv_send_wr& work) {
  if (!window_) {
    window_.reset(ibv_alloc_mw(domain_, IBV_MW_TYPE_2));
    if (!window_) {
      return fail(Errc::exhausted,
                  std::string("the RDMA device makes no more memory windows: ") + std::strerror(errno) + ".");
    }
    ++statistics_->memory_windows;
  }
  const std::uint32_t before = key_;
  key_ = ibv_inc_rkey(window_->rkey);
  TRIBUTARY_ASSERT(key_ != before || before == 0, "a memory window is bound again with key {}", key_);
  work.opcode = IBV_WR_BIND_MW;
  work.bind_mw.mw = window_.get();
  work.bind_mw.rkey = key_;
  work.bind_mw.bind_info = {.mr = registration.region(),
                            .addr = reinterpret_cast<std::uintptr_t>(memory.data()),
                            .length = memory.size(),
                            .mw_access_flags = rights};
  return key_;
}

void MemoryWindow::revoke(ibv_send_wr& work) noexcept {
  TRIBUTARY_ASSERT(window_ && window_->rkey != key_, "a memory window is revoked that is not bound, with key {}", key_);
  window_->rkey = key_;  // set after the bind, for which some devices' libraries need the old key
  work.opcode = IBV_WR_LOCAL_INV;
  work.invalidate_rkey = key_;
}

void MemoryWindows::open(ibv_pd& domain, std::uint32_t count, VerbsStatistics& statistics) {
  TRIBUTARY_ASSERT(count == 0 || std::has_single_bit(count), "{} windows, which is no power of two", count);
  ring_.resize(count);
  for (Entry& entry : ring_) entry.window.open(domain, statistics);
}

void MemoryWindows::close() noexcept {
  ring_.clear();
  freed_ = revoking_ = bound_ = 0;
}

Result<std::uint32_t> MemoryWindows::bind(std::span<const std::byte> memory, const Registration& registration,
                                          ibv_send_wr& work) {
  TRIBUTARY_ASSERT(has_free(), "window {} of {} is bound, and only windows below {} are free", bound_, ring_.size(),
                   freed_);
  auto key = at(bound_).window.bind(memory, registration, IBV_ACCESS_REMOTE_READ, work);
  if (key) ++bound_;
  return key;
}

void MemoryWindows::revoke(ibv_send_wr& work, std::uint32_t position) noexcept {
  TRIBUTARY_ASSERT(revoking_ != bound_, "a window is revoked, and all {} are being revoked already", bound_);
  Entry& entry = at(revoking_++);
  entry.revoked_at = position;
  entry.window.revoke(work);
}

std::uint32_t MemoryWindows::done_to(std::uint32_t position) noexcept {
  const std::uint32_t before = freed_;
  while (freed_ != revoking_ && static_cast<std::int32_t>(position - at(freed_).revoked_at) >= 0) ++freed_;
  return freed_ - before;
}

}  // namespace tributary::transport::verbs
