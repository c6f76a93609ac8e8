#include "transport/dpdk/shared_payloads.h"

#include <rte_mbuf.h>

#include <cstring>
#include <utility>

#include "transport/dpdk/fetch.h"
#include "transport/packet/payload_place.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::dpdk {
namespace {

static_assert(kSharedPayloads == packet::kPayloadPlaces);
// Each change of a reference count is an atomic operation, so one operation adds this many references.
constexpr std::int16_t kReferences = 64;

}  // namespace

SharedPayloads::Found SharedPayloads::find(std::span<const std::byte> payload, std::size_t place) noexcept {
  TRIBUTARY_ASSERT(place < known_.size(), "a payload has place {} of {}", place, known_.size());
  if (!offered_ || payload.size() < kBytesMin) return {};
  Known& known = known_[place];
  if (known.data != payload.data() || known.bytes != payload.size()) {
    ++first_;
    if (known.data == nullptr) {
      TRIBUTARY_ASSERT(used_count_ < used_.size(), "{} places are used, of {}", used_count_ + 1, used_.size());
      used_[used_count_++] = static_cast<std::uint8_t>(place);
    } else {
      let_go(known);
    }
    known = {.data = payload.data(), .bytes = payload.size()};
    if (!wanted_) return {};
  } else {
    ++again_;
  }
  if (known.mbuf == nullptr && !make(known)) return {};
  if (known.unused == 0) {
    rte_mbuf_refcnt_update(known.mbuf, kReferences);
    known.unused = kReferences;
  }
  --known.unused;
  return {known.mbuf, known.sum};
}

SharedPayloads::~SharedPayloads() {
  forget();
  ::rte_pktmbuf_free(next_);
}

/// Returns a buffer, or nullptr if the pool is empty.
rte_mbuf* SharedPayloads::blank() noexcept {
  return next_ != nullptr ? std::exchange(next_, nullptr) : ::rte_pktmbuf_alloc(pool_);
}

bool SharedPayloads::make(Known& known) noexcept {
  rte_mbuf* const mbuf = blank();
  if (mbuf == nullptr || known.bytes > rte_pktmbuf_tailroom(mbuf)) {
    ::rte_pktmbuf_free(mbuf);
    return false;
  }
  auto* const to = rte_pktmbuf_mtod(mbuf, std::byte*);
  const std::span from(known.data, known.bytes);
  if (sums_) {
    known.sum = ethernet::copy_and_sum(to, from);
  } else {
    std::memcpy(to, known.data, known.bytes);
  }
  mbuf->data_len = static_cast<std::uint16_t>(known.bytes);
  mbuf->pkt_len = mbuf->data_len;
  known.mbuf = mbuf;
  next_ = ::rte_pktmbuf_alloc(pool_);
  if (next_ != nullptr) fetch_to_write(rte_pktmbuf_mtod(next_, std::byte*), known.bytes);
  return true;
}

void SharedPayloads::let_go(const Known& known) noexcept {
  TRIBUTARY_ASSERT(known.mbuf == nullptr || known.unused <= kReferences,
                   "a buffer has {} references for packets to come", known.unused);
  if (known.mbuf == nullptr) return;
  // This object has held one reference until now, so the count was never zero before.
  rte_mbuf_refcnt_update(known.mbuf, static_cast<std::int16_t>(-static_cast<std::int16_t>(known.unused)));
  ::rte_pktmbuf_free_seg(known.mbuf);
}

void SharedPayloads::forget() noexcept {
  if (first_ > 0) wanted_ = again_ >= first_;
  first_ = again_ = 0;
  for (const std::uint8_t place : std::span(used_).first(used_count_)) {
    let_go(known_[place]);
    known_[place] = {};
  }
  used_count_ = 0;
}

}  // namespace tributary::transport::dpdk
