#include "verbs/windows.h"

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace tributary::transport::verbs {

void Windows::open(ibv_pd& domain, std::uint32_t count, VerbsStatistics& statistics) {
  domain_ = &domain;
  statistics_ = &statistics;
  assert(count == 0 || std::has_single_bit(count));
  ring_.resize(count);
}

void Windows::close() noexcept {
  for (const Place& place : ring_) {
    if (place.window) --statistics_->memory_windows;
  }
  ring_.clear();
  freed_ = revoking_ = bound_ = 0;
}

Result<std::uint32_t> Windows::bind(std::span<const std::byte> memory, const Registration& registration,
                                    ibv_send_wr& work) {
  Place& place = at(bound_);
  if (!place.window) {
    place.window.reset(ibv_alloc_mw(domain_, IBV_MW_TYPE_2));
    if (!place.window) {
      return fail(Errc::exhausted,
                  std::string("the RDMA device makes no more memory windows: ") + std::strerror(errno) + ".");
    }
    ++statistics_->memory_windows;
  }
  place.key = ibv_inc_rkey(place.window->rkey);
  work.opcode = IBV_WR_BIND_MW;
  work.bind_mw.mw = place.window.get();
  work.bind_mw.rkey = place.key;
  work.bind_mw.bind_info = {.mr = registration.region(),
                            .addr = reinterpret_cast<std::uintptr_t>(memory.data()),
                            .length = memory.size(),
                            .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  ++bound_;
  return place.key;
}

void Windows::revoke(ibv_send_wr& work, std::uint32_t position) noexcept {
  Place& place = at(revoking_++);
  place.revoked_at = position;
  place.window->rkey = place.key;  // only now: some devices' libraries want the old one for as long as bind is posted
  work.opcode = IBV_WR_LOCAL_INV;
  work.invalidate_rkey = place.key;
}

std::uint32_t Windows::done_to(std::uint32_t position) noexcept {
  const std::uint32_t before = freed_;
  while (freed_ != revoking_ && static_cast<std::int32_t>(position - at(freed_).revoked_at) >= 0) ++freed_;
  return freed_ - before;
}

}  // namespace tributary::transport::verbs
