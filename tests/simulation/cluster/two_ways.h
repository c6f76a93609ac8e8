#pragma once
// A simulated host with a network device that it can lose, and with a second way that stays. It consists of two hosts
// of the network, "h" and "h+device", with one transport.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tributary/transport/second_way.h"
#include "tributary/transport/sim_network.h"

namespace tributary::simulation {

[[nodiscard]] inline std::string device_of(const std::string& host) {
  return host + "+device";
}

class TwoWays final : public transport::Transport, public transport::HasSecondWay {
 public:
  /// `early_bytes_max` is the value that HasSecondWay returns; it must cover all payloads that the network reports as
  /// sent early.
  TwoWays(transport::SimNetwork& network, const std::string& host, std::uint32_t early_bytes_max)
      : TwoWays(network, host, early_bytes_max, network.transport(device_of(host)), network.transport(host)) {}
  /// Uses these two transports: the transports of the two hosts, or transports that wrap them.
  TwoWays(transport::SimNetwork& network, const std::string& host, std::uint32_t early_bytes_max,
          transport::Transport& first, transport::Transport& second)
      : network_(network), host_(host), first_(first), second_(second), early_bytes_max_(early_bytes_max) {}

  /// Breaks the device's connections. New connections are refused, or get no answer if `silent`.
  void lose_device(const std::vector<std::string>& devices_of_others, bool silent) {
    lost_ = true;
    *listening_ = nullptr;
    for (const std::string& other : devices_of_others) {
      if (other != device_of(host_)) network_.cut(device_of(host_), other);
    }
    if (silent)
      network_.call_at(network_.now() + std::chrono::milliseconds(1), [this] { network_.partition(device_of(host_)); });
  }
  [[nodiscard]] bool lost() const noexcept { return lost_; }

  // ---- Transport: the first way
  Result<std::unique_ptr<transport::Listener>> listen(const Endpoint& at, transport::Acceptor& acceptor) override {
    auto listener = first_.listen({device_of(at.host), at.port}, acceptor);
    if (!listener) return listener;
    const Endpoint local{at.host, (*listener)->local().port};
    *listening_ = std::move(*listener);
    return std::make_unique<Named>(listening_, local);
  }
  std::unique_ptr<transport::Channel> connect(const Endpoint& to, transport::ChannelHandler& handler,
                                              transport::Duration limit) override {
    // Aggregators have no device to lose.
    const bool aggregator = to.host.starts_with("aggregator");
    const Endpoint there =
        lost_ ? Endpoint{"nowhere", 1} : Endpoint{aggregator ? to.host : device_of(to.host), to.port};
    return first_.connect(there, handler, limit);
  }
  std::size_t poll(transport::Duration) override {
    return first_.poll(transport::Duration::zero()) + second_.poll(transport::Duration::zero());
  }
  transport::TimePoint now() const override { return first_.now(); }
  void post(std::function<void()> call) override { second_.post(std::move(call)); }

  // ---- HasSecondWay
  transport::Transport& second_way() noexcept override { return second_; }
  std::uint32_t sent_early_bytes_max() const noexcept override { return early_bytes_max_; }
  Status first_way(const std::string&) const override {
    if (lost_) return fail(Errc::unreachable, "the device of " + host_ + " is gone");
    return {};
  }

 private:
  using Shared = std::shared_ptr<std::unique_ptr<transport::Listener>>;
  class Named final : public transport::Listener {
   public:
    Named(Shared listener, Endpoint local) : listener_(std::move(listener)), local_(std::move(local)) {}
    ~Named() override { *listener_ = nullptr; }
    Named(const Named&) = delete;
    Named& operator=(const Named&) = delete;
    Endpoint local() const override { return local_; }

   private:
    Shared listener_;
    Endpoint local_;
  };

  transport::SimNetwork& network_;
  const std::string host_;
  transport::Transport& first_;
  transport::Transport& second_;
  const std::uint32_t early_bytes_max_;
  Shared listening_ = std::make_shared<std::unique_ptr<transport::Listener>>();
  bool lost_ = false;
};

}  // namespace tributary::simulation
