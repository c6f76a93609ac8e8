#pragma once
// RDMA verbs, and TCP as its second way: one thread, one poll(), one wait. The calls of Transport use verbs.
#include <cstdint>
#include <memory>
#include <string>

#include "tributary/transport/second_way.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport {

class VerbsBesideTcp final : public Transport, public TakesDeviceMemory, public HasSecondWay {
 public:
  /// Makes a transport like VerbsTransport::create(), with the spin settings of `verbs` in place of those in `tcp`.
  [[nodiscard]] static Result<std::unique_ptr<VerbsBesideTcp>> create(const VerbsSettings& verbs,
                                                                      const TcpSettings& tcp);

  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    return verbs_->listen(at, acceptor);
  }
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    return verbs_->connect(to, handler, limit);
  }
  std::size_t poll(Duration wait) override { return verbs_->poll(wait); }
  [[nodiscard]] TimePoint now() const override { return verbs_->now(); }
  void post(std::function<void()> call) override { verbs_->post(std::move(call)); }
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> memory) override {
    return verbs_->keep_registered(memory);
  }
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                               std::shared_ptr<DeviceMemory> owner) override {
    return verbs_->keep_device_memory(memory, std::move(owner));
  }
  [[nodiscard]] std::uint64_t room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const override {
    return verbs_->room_bytes(payloads, payload_bytes);
  }

  /// The statistics of the first way, verbs.
  [[nodiscard]] VerbsStatistics statistics() const { return verbs_->statistics(); }

  [[nodiscard]] Transport& second_way() noexcept override { return *tcp_; }
  [[nodiscard]] std::uint32_t sent_early_bytes_max() const noexcept override { return sent_early_bytes_max_; }
  [[nodiscard]] Status first_way(const std::string& own_address) const override {
    return verbs_->device_at(own_address);
  }

 private:
  VerbsBesideTcp(std::unique_ptr<VerbsTransport> verbs, std::unique_ptr<TcpTransport> tcp,
                 std::uint32_t sent_early_bytes_max)
      : verbs_(std::move(verbs)), tcp_(std::move(tcp)), sent_early_bytes_max_(sent_early_bytes_max) {}

  std::unique_ptr<VerbsTransport> verbs_;
  std::unique_ptr<TcpTransport> tcp_;  // destroyed before verbs_, which runs its callbacks
  const std::uint32_t sent_early_bytes_max_;
};

}  // namespace tributary::transport
