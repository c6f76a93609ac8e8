#include "client/gpu/staged_call.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tributary::client::gpu {
namespace {

DeviceAddress address_of(const void* pointer) noexcept {
  return reinterpret_cast<DeviceAddress>(pointer);
}

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

void StagedCall::begin() {
  if (!from_) return;
  const std::size_t chunks = chunks_of(caller_.send_bytes);
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    copies_ += chunks;
  }
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::size_t offset = i * kChunkBytes, bytes = std::min(kChunkBytes, caller_.send_bytes - offset);
    from_->down->submit({.to = address_of(host_.send + offset),
                         .from = address_of(caller_.send + offset),
                         .bytes = bytes,
                         .what = "copying a call's input from GPU " + std::to_string(from_->device),
                         .done = [self = shared_from_this(), bytes](const Status& s) { self->arrived(bytes, s); }});
  }
}

// In the order of the chunks. After an error no more counts: what is whole must be so from the beginning on.
void StagedCall::arrived(std::size_t bytes, const Status& status) {
  std::unique_lock lock(mutex_);
  const bool good = status && outcome_;
  const bool first_error = !status && outcome_.has_value();
  if (good) ready_.store(ready_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
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
                   .done = [self = shared_from_this()](const Status& status) {
                     self->ended(status, std::unique_lock(self->mutex_));
                   }});
}

void StagedCall::finish(const Status& outcome, std::function<void(const Status&)> done) {
  for (std::size_t chunk = 0; outcome && chunk < gone_up_.size(); ++chunk) {
    if (!gone_up_[chunk]) upload(chunk);
  }
  std::unique_lock lock(mutex_);
  if (outcome_) outcome_ = outcome;  // an error of a copy is the cause of what came of it
  finished_ = true;
  done_ = std::move(done);
  ++copies_;  // this one's own
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
  --copies_;
  if (copies_ > 0) return;
  const auto done = finished_ ? std::exchange(done_, nullptr) : nullptr;
  const Status outcome = outcome_;
  lock.unlock();
  changed_.notify_all();
  if (done) done(outcome);
}

}  // namespace tributary::client::gpu
