#pragma once
// Memory that the network's devices can access and the processor cannot, like a GPU's memory. It keeps its content in
// another form, so that code which reads or writes it like the processor's memory gets wrong bits. Copies keep their
// order, and take time.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/operation/direct_memory.h"
#include "client/operation/operation.h"
#include "tests/simulation/cluster/workload.h"
#include "tributary/transport/device_memory.h"

namespace tributary::simulation {

class DistantDevice final : public client::DirectDevice,
                            public transport::DeviceMemory,
                            public std::enable_shared_from_this<DistantDevice> {
 public:
  struct Settings {
    std::function<void()> wake;
    bool refuses = false;  // true: the network's devices cannot access it
  };
  explicit DistantDevice(Settings settings) : settings_(std::move(settings)) {}

  /// Makes this memory belong to the device, or to the host again; its content stays.
  void take(std::span<std::byte> memory);
  void give_back(std::span<std::byte> memory);
  [[nodiscard]] bool idle() const { return works_.empty(); }
  /// Completes this many copies.
  void advance(std::size_t works);
  /// Drops the copies under way, which never end because the host is gone. The copies refer to this device and the
  /// device to them.
  void abandon() { const auto works = std::exchange(works_, {}); }
  void after_all(std::function<void()> done) { works_.push_back({.done = std::move(done)}); }
  [[nodiscard]] bool refuses() const { return settings_.refuses; }
  [[nodiscard]] std::uint64_t copies() const { return copies_; }
  std::uint64_t left_in_the_middle = 0;    // calls that went on in host memory after they had begun
  std::uint64_t copies_out_of_blocks = 0;  // copies to the host of data that the client had kept in this memory

  Result<std::shared_ptr<client::DirectBlock>> allocate(transport::Transport& transport, std::size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) override;
  void wake() override { settings_.wake(); }

  std::vector<transport::DeviceWay> ways() const override { return {}; }
  Result<DmaBuf> dma_buf(std::span<const std::byte>) override { return fail(Errc::unsupported, "not here"); }
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  bool holds(std::span<const std::byte> memory) const override { return ours(memory.data()); }
  void reached(const std::string&, std::optional<transport::DeviceWay>, const std::string&) override {}

 private:
  class Block;
  struct Work {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::function<void()> done;
  };
  [[nodiscard]] bool ours(const std::byte* at) const;

  const Settings settings_;
  std::map<const std::byte*, std::size_t> memory_;
  std::set<const std::byte*> blocks_;  // the client's own blocks
  std::deque<Work> works_;
  std::uint64_t copies_ = 0;
};

/// A call whose buffers lie in such memory until the call has ended.
class DistantCall final : public client::DirectMemory {
 public:
  DistantCall(std::shared_ptr<DistantDevice> device, Buffers& buffers, client::Operation& operation,
              std::size_t input_bytes);
  /// Call this when the operation has ended. It calls `done` when the buffers are host memory again and hold the
  /// result.
  void finish(bool good, std::function<void()> done);
  [[nodiscard]] bool materialized() const { return staged_ != nullptr; }

  const std::shared_ptr<client::DirectDevice>& device() const noexcept override { return base_; }
  Result<std::vector<std::span<const std::byte>>> keep(transport::Transport& transport) override;
  Result<InHostMemory> materialize(bool with_results, const Status& why) override;

 private:
  class Staged;
  const std::shared_ptr<DistantDevice> device_;
  const std::shared_ptr<client::DirectDevice> base_;
  Buffers& buffers_;
  const std::byte* send_;
  std::size_t input_bytes_;
  std::byte* recv_;
  std::vector<std::unique_ptr<transport::KeptMemory>> promises_;
  std::shared_ptr<Staged> staged_;
};

}  // namespace tributary::simulation
