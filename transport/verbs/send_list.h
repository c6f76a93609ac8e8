#pragma once
// Work requests for one send queue, which the device gets at once.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class SendList {
 public:
  static constexpr std::size_t kRoom = 32;
  static constexpr std::size_t kGathered = 2;

  [[nodiscard]] std::size_t room() const noexcept { return kRoom - count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  void clear() noexcept {
    count_ = 0;
    gathers_ = false;
  }
  /// True if the bytes of a request lie in more than one place.
  [[nodiscard]] bool gathers() const noexcept { return gathers_; }
  /// Adds a request at the end; there must be room.
  [[nodiscard]] ibv_send_wr& add(std::uint64_t number) noexcept {
    TRIBUTARY_ASSERT(count_ < kRoom, "a request is added to a list that has {}", count_);
    ibv_send_wr& work = works_[count_++];
    work = {};
    work.wr_id = number;
    return work;
  }
  /// Adds a request with these bytes.
  [[nodiscard]] ibv_send_wr& add(std::uint64_t number, std::span<const std::byte> bytes,
                                 std::uint32_t local_key) noexcept {
    ibv_sge* const places = places_[count_].data();
    ibv_send_wr& work = add(number);
    work.sg_list = places;
    gather(work, bytes, local_key);
    return work;
  }
  /// Adds bytes to the last request; at most kGathered ranges in all.
  void gather(ibv_send_wr& work, std::span<const std::byte> bytes, std::uint32_t local_key) noexcept {
    TRIBUTARY_ASSERT(work.num_sge < static_cast<int>(kGathered), "a request gathers from {} places already",
                     work.num_sge);
    gathers_ = gathers_ || work.num_sge > 0;
    work.sg_list[work.num_sge++] = {.addr = reinterpret_cast<std::uintptr_t>(bytes.data()),
                                    .length = static_cast<std::uint32_t>(bytes.size()),
                                    .lkey = local_key};
  }
  [[nodiscard]] ibv_send_wr& last() noexcept {
    TRIBUTARY_ASSERT(count_ > 0, "the last of no requests is asked for");
    return works_[count_ - 1];
  }
  /// The first request; `next` links the other requests.
  [[nodiscard]] ibv_send_wr* chained() noexcept {
    for (std::size_t i = 0; i + 1 < count_; ++i) works_[i].next = &works_[i + 1];
    return works_.data();
  }
  [[nodiscard]] std::span<const ibv_send_wr> works() const noexcept { return {works_.data(), count_}; }

 private:
  std::array<ibv_send_wr, kRoom> works_;
  std::array<std::array<ibv_sge, kGathered>, kRoom> places_;
  std::size_t count_ = 0;
  bool gathers_ = false;
};

}  // namespace tributary::transport::verbs
