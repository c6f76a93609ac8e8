#include "client/gpu/staged_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client::gpu {
namespace {

std::size_t chunks_of(std::size_t bytes) noexcept {
  return (bytes + StagedCall::kChunkBytes - 1) / StagedCall::kChunkBytes;
}

}  // namespace

StagedCall::StagedCall(const CallBuffers& caller, const CallBuffers& host, std::optional<CopyLines> from,
                       std::optional<CopyLines> to, Blocks blocks, Hooks hooks)
    : caller_(caller),
      host_(host),
      from_(from),
      to_(to),
      blocks_(std::move(blocks)),
      hooks_(std::move(hooks)),
      ready_(from ? 0 : host.send_bytes),
      landed_(to ? chunks_of(host.recv_bytes) : 0),
      gone_up_(landed_.size()) {}

void StagedCall::begin(bool with_results) {
  if (!from_) return;
  const bool same = caller_.send == caller_.recv && caller_.send_bytes == caller_.recv_bytes;
  const std::size_t results = with_results && !same ? caller_.recv_bytes : 0;
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    copies_ += chunks_of(results) + chunks_of(caller_.send_bytes);
  }
  results_coming_.store(results, std::memory_order_relaxed);
  bool flush = from_->flush;
  for (std::size_t at = 0; at < results; at += kChunkBytes) {
    begin_copy(caller_.recv + at, host_.recv + at, std::min(kChunkBytes, results - at), std::exchange(flush, false),
               false);
  }
  for (std::size_t at = 0; at < caller_.send_bytes; at += kChunkBytes) {
    // Cast away const: the block belongs to the library, and only the operation sees it as const.
    begin_copy(caller_.send + at, const_cast<std::byte*>(host_.send) + at,
               std::min(kChunkBytes, caller_.send_bytes - at), std::exchange(flush, false), true);
  }
}

void StagedCall::begin_copy(const std::byte* from, std::byte* to, std::size_t bytes, bool flush, bool input) {
  from_->down->submit({.to = address_of(to),
                       .from = address_of(from),
                       .bytes = bytes,
                       .flush = flush,
                       .what = "copying a call's input from GPU " + std::to_string(from_->device),
                       .done = [self = shared_from_this(), bytes, input](const Status& status) {
                         self->arrived(bytes, input, status);
                       }});
}

// Notes that a chunk has arrived; called in the order of the chunks. After an error later chunks do not count, because
// the part of the input that has come must have no gaps.
void StagedCall::arrived(std::size_t bytes, bool input, const Status& status) {
  std::unique_lock lock(mutex_);
  const bool good = status && outcome_;
  const bool first_error = !status && outcome_.has_value();
  if (good && input) ready_.store(ready_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
  if (good && !input) results_coming_.fetch_sub(bytes, std::memory_order_release);
  if (first_error) outcome_ = status;
  lock.unlock();
  if (good && hooks_.arrived) hooks_.arrived();
  if (first_error && hooks_.failed) hooks_.failed(status.error());
  lock.lock();
  ended(status, std::move(lock));
}

Status StagedCall::download() {
  begin();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return copies_ == 0; });
  return outcome_;
}

std::size_t StagedCall::chunk_bytes(std::size_t chunk) const noexcept {
  return std::min(kChunkBytes, host_.recv_bytes - chunk * kChunkBytes);
}

void StagedCall::result_landed(std::span<const std::byte> part) {
  if (!to_) return;
  TRIBUTARY_ASSERT(part.data() >= host_.recv && part.data() + part.size() <= host_.recv + host_.recv_bytes,
                   "{} bytes of result landed at {}, and the call's {} bytes are at {}", part.size(), part.data(),
                   host_.recv_bytes, host_.recv);
  std::size_t offset = static_cast<std::size_t>(part.data() - host_.recv);
  for (std::size_t left = part.size(); left > 0;) {
    const std::size_t chunk = offset / kChunkBytes;
    const std::size_t here = std::min(left, (chunk + 1) * kChunkBytes - offset);
    landed_[chunk] += here;
    if (landed_[chunk] == chunk_bytes(chunk)) upload(chunk);
    offset += here;
    left -= here;
  }
}

double StagedCall::copy_rate() const noexcept {
  const double down = from_ ? from_->down->bytes_per_us() : 0, up = to_ ? to_->up->bytes_per_us() : 0;
  return down > 0 && up > 0 ? std::min(down, up) : std::max(down, up);
}

std::size_t StagedCall::result_left() const noexcept {
  return to_ ? host_.recv_bytes - arrived_up_.load(std::memory_order_relaxed) : 0;
}

void StagedCall::upload(std::size_t chunk) {
  gone_up_[chunk] = true;
  {
    const std::lock_guard lock(mutex_);
    ++copies_;
  }
  const std::size_t offset = chunk * kChunkBytes;
  to_->up->submit({.to = address_of(caller_.recv + offset),
                   .from = address_of(host_.recv + offset),
                   .bytes = chunk_bytes(chunk),
                   .what = "copying a call's result to GPU " + std::to_string(to_->device),
                   .done = [self = shared_from_this(), bytes = chunk_bytes(chunk)](const Status& status) {
                     self->arrived_up_.fetch_add(bytes, std::memory_order_relaxed);
                     self->ended(status, std::unique_lock(self->mutex_));
                   }});
}

void StagedCall::finish(const Status& outcome, std::function<void(const Status&)> done) {
  for (std::size_t chunk = 0; outcome && chunk < gone_up_.size(); ++chunk) {
    if (!gone_up_[chunk]) upload(chunk);
  }
  std::unique_lock lock(mutex_);
  if (outcome_) outcome_ = outcome;  // if a copy failed, its error is the cause of `outcome`: keep it
  finished_ = true;
  done_ = std::move(done);
  ++copies_;  // keep the call open until ended() below
  ended({}, std::move(lock));
}

Status StagedCall::finish(const Status& outcome) {
  finish(outcome, [](const Status&) {});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return copies_ == 0; });
  return outcome_;
}

void StagedCall::ended(const Status& status, std::unique_lock<std::mutex> lock) {
  if (!status && outcome_) outcome_ = status;
  TRIBUTARY_ASSERT(copies_ > 0, "a copy has ended, and none of GPU {} was under way", from_ ? from_->device : -1);
  --copies_;
  if (copies_ > 0) return;
  const auto done = finished_ ? std::exchange(done_, nullptr) : nullptr;
  const Status outcome = outcome_;
  lock.unlock();
  changed_.notify_all();
  if (done) done(outcome);
}

}  // namespace tributary::client::gpu
