#include "tests/simulation/cluster/distant_memory.h"

#include <algorithm>
#include <cstring>

#include "client/operation/operation.h"

namespace tributary::simulation {
namespace {

constexpr std::byte kForm{0x5A};

void change_form(std::span<std::byte> memory) {
  for (std::byte& byte : memory) byte ^= kForm;
}

}  // namespace

class DistantDevice::Block final : public client::DirectBlock {
 public:
  Block(std::shared_ptr<DistantDevice> device, std::size_t bytes) : device_(std::move(device)), bytes_(bytes) {
    device_->take(bytes_);
    device_->blocks_.insert(bytes_.data());
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() override {
    promise.reset();
    device_->blocks_.erase(bytes_.data());
    device_->give_back(bytes_);
  }
  std::span<std::byte> memory() const noexcept override { return const_cast<std::vector<std::byte>&>(bytes_); }
  std::unique_ptr<transport::KeptMemory> promise;

 private:
  std::shared_ptr<DistantDevice> device_;
  std::vector<std::byte> bytes_;
};

void DistantDevice::take(std::span<std::byte> memory) {
  if (memory.empty()) return;
  change_form(memory);
  memory_.emplace(memory.data(), memory.size());
}

void DistantDevice::give_back(std::span<std::byte> memory) {
  if (memory.empty()) return;
  memory_.erase(memory.data());
  change_form(memory);
}

bool DistantDevice::ours(const std::byte* at) const {
  auto found = memory_.upper_bound(at);
  if (found == memory_.begin()) return false;
  --found;
  return at < found->first + found->second;
}

Result<std::shared_ptr<client::DirectBlock>> DistantDevice::allocate(transport::Transport& transport,
                                                                     std::size_t bytes) {
  auto block = std::make_shared<Block>(shared_from_this(), bytes);
  block->promise =
      dynamic_cast<transport::TakesDeviceMemory&>(transport).keep_device_memory(block->memory(), shared_from_this());
  return block;
}

void DistantDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) {
  works_.push_back({.to = to, .from = from, .bytes = bytes, .done = std::move(done)});
}

void DistantDevice::advance(std::size_t works) {
  for (; works > 0 && !works_.empty(); --works) {
    Work work = std::move(works_.front());
    works_.pop_front();
    if (work.bytes > 0) static_cast<void>(copy(work.to, work.from, work.bytes));
    if (work.done) work.done();
  }
}

Status DistantDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  if (ours(from) && !ours(to) && blocks_.contains(std::prev(memory_.upper_bound(from))->first)) ++copies_out_of_blocks;
  if (ours(to) != ours(from)) change_form({to, bytes});
  ++copies_;
  return {};
}

/// The images of both buffers in the host's memory.
class DistantCall::Staged final : public client::StagedMemory {
 public:
  std::vector<std::byte> send, recv;
  bool down = false;

  bool input_ready(const std::byte*) const noexcept override { return down; }
  bool input_whole() const noexcept override { return down; }
  void result_landed(std::span<const std::byte>) override {}
};

DistantCall::DistantCall(std::shared_ptr<DistantDevice> device, Buffers& buffers, client::Operation& operation,
                         std::size_t input_bytes)
    : device_(std::move(device)),
      base_(device_),
      buffers_(buffers),
      send_(operation.send),
      input_bytes_(input_bytes),
      recv_(operation.recv) {
  device_->take(buffers_.send);
  device_->take(buffers_.recv);
}

Result<std::vector<std::span<const std::byte>>> DistantCall::keep(transport::Transport& transport) {
  if (device_->refuses()) return fail(Errc::unsupported, "the network's devices do not reach it");
  promises_.clear();
  std::vector<std::span<const std::byte>> ranges;
  for (const auto* buffer : {&buffers_.send, &buffers_.recv}) {
    if (buffer->empty()) continue;
    ranges.emplace_back(*buffer);
    promises_.push_back(dynamic_cast<transport::TakesDeviceMemory&>(transport).keep_device_memory(*buffer, device_));
  }
  return ranges;
}

Result<client::DirectMemory::InHostMemory> DistantCall::materialize(bool with_results, const Status&) {
  staged_ = std::make_shared<Staged>();
  promises_.clear();
  device_->left_in_the_middle += with_results ? 1 : 0;
  // Before the call begins, read only the input: results may be written beside the input while it is still arriving.
  const auto image = [&](std::vector<std::byte>& of, std::vector<std::byte>& host, std::span<const std::byte> down) {
    host.assign(of.size(), std::byte{0xCC});
    if (!down.empty()) device_->copy(host.data() + (down.data() - of.data()), down.data(), down.size(), nullptr);
  };
  const bool in_place = buffers_.send.empty();
  const std::span<const std::byte> whole(buffers_.recv), input(send_, send_ != nullptr ? input_bytes_ : 0);
  image(buffers_.recv, staged_->recv, with_results ? whole : in_place ? input : std::span<const std::byte>());
  image(buffers_.send, staged_->send, buffers_.send);
  device_->after_all([staged = staged_, device = device_] {
    staged->down = true;
    device->wake();
  });
  InHostMemory host{.staged = staged_};
  if (recv_ != nullptr) host.recv = staged_->recv.data() + (recv_ - buffers_.recv.data());
  if (send_ != nullptr && in_place) {
    host.send = staged_->recv.data() + (send_ - buffers_.recv.data());
  } else if (send_ != nullptr) {
    host.send = staged_->send.data() + (send_ - buffers_.send.data());
  }
  return host;
}

void DistantCall::finish(bool good, std::function<void()> done) {
  if (staged_ && good && !staged_->recv.empty())
    device_->copy(buffers_.recv.data(), staged_->recv.data(), staged_->recv.size(), nullptr);
  device_->after_all([device = device_, &buffers = buffers_, staged = staged_, done = std::move(done)] {
    device->give_back(buffers.send);
    device->give_back(buffers.recv);
    done();
  });
}

}  // namespace tributary::simulation
