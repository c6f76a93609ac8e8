#pragma once
// The contract's classes over SimCore. They hold names and indices, and no state of their own.
#include "transport/sim/memory/sim_core.h"

namespace tributary::transport {

class SimChannel final : public Channel, public ReachesDeviceMemory {
 public:
  SimChannel(std::shared_ptr<SimCore> core, std::uint32_t connection, unsigned side)
      : core_(std::move(core)), connection_(connection), side_(side) {}
  ~SimChannel() override { core_->channel_destroyed(connection_, side_); }
  SimChannel(const SimChannel&) = delete;
  SimChannel& operator=(const SimChannel&) = delete;

  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override {
    return core_->send(connection_, side_, header, payload, cookie);
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    core_->send_copy(connection_, side_, header, payload);
  }
  void expect(const FrameHeader& header, std::span<std::byte> place) override {
    core_->expect(connection_, side_, header, place);
  }
  bool uses_expected_places() const noexcept override { return core_->connection(connection_).expected_places; }
  Status reach(std::span<const std::byte> memory) override {
    if (closed()) return fail(Errc::unreachable, "the connection is closed");
    return core_->owner_of(memory) != nullptr ? Status{} : fail(Errc::unsupported, "this memory was not kept");
  }
  void resume() override { core_->resume_reading(connection_, side_); }
  void close() override { core_->close(connection_, side_); }
  void close_after_flush(Duration limit) override { core_->close_after_flush(connection_, side_, limit); }
  bool closed() const noexcept override { return core_->connection(connection_).ends[side_].closed; }
  std::string peer() const override { return to_string(core_->connection(connection_).ends[1 - side_].name); }

  [[nodiscard]] std::uint32_t connection() const noexcept { return connection_; }

 private:
  std::shared_ptr<SimCore> core_;  // shared, so that a channel may be destroyed after the network
  std::uint32_t connection_;       // index, which no other connection gets while this channel exists
  unsigned side_;
};

class SimListenerHandle final : public Listener {
 public:
  SimListenerHandle(std::shared_ptr<SimCore> core, std::uint32_t host, std::uint64_t id, Endpoint local)
      : core_(std::move(core)), host_(host), id_(id), local_(std::move(local)) {}
  ~SimListenerHandle() override { core_->unlisten(host_, id_); }
  SimListenerHandle(const SimListenerHandle&) = delete;
  SimListenerHandle& operator=(const SimListenerHandle&) = delete;
  Endpoint local() const override { return local_; }

 private:
  std::shared_ptr<SimCore> core_;
  std::uint32_t host_;
  std::uint64_t id_;
  Endpoint local_;
};

/// A channel of a process that was killed before it connected.
class DeadChannel final : public Channel {
 public:
  explicit DeadChannel(Endpoint to) : to_(std::move(to)) {}
  bool send(const FrameHeader&, std::span<const std::byte>, std::uint64_t) override { return false; }
  void send_copy(const FrameHeader&, std::span<const std::byte>) override {}
  void resume() override {}
  void close() override {}
  void close_after_flush(Duration) override {}
  bool closed() const noexcept override { return true; }
  std::string peer() const override { return to_string(to_); }

 private:
  Endpoint to_;
};

/// One process on a host. After kill() its functions have no effect, and no callback runs.
class KeptBySim final : public KeptMemory {
 public:
  KeptBySim(std::weak_ptr<SimCore> core, std::uint64_t number) : core_(std::move(core)), number_(number) {}
  KeptBySim(const KeptBySim&) = delete;
  KeptBySim& operator=(const KeptBySim&) = delete;
  ~KeptBySim() override {
    if (const auto core = core_.lock()) core->unkeep(number_);
  }

 private:
  std::weak_ptr<SimCore> core_;
  std::uint64_t number_;
};

class SimTransport final : public Transport, public TakesDeviceMemory {
 public:
  SimTransport(SimCore& core, std::uint32_t host, std::uint32_t generation)
      : core_(core), host_(host), generation_(generation) {}

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    if (!living()) return fail(Errc::io, "cannot listen on " + to_string(at) + ": this host was killed.");
    return core_.listen(host_, at, acceptor);
  }
  std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    if (!living()) return std::make_unique<DeadChannel>(to);
    return core_.connect(host_, to, handler, limit);
  }
  std::size_t poll(Duration wait) override { return living() ? core_.poll(host_, wait) : 0; }
  TimePoint now() const override { return core_.now(); }
  void post(std::function<void()> call) override {
    if (living()) core_.post(host_, std::move(call));
  }
  std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                 std::shared_ptr<DeviceMemory> owner) override {
    return std::make_unique<KeptBySim>(core_.weak_from_this(), core_.keep_device_memory(memory, std::move(owner)));
  }

 private:
  [[nodiscard]] bool living() const { return core_.host(host_).alive && core_.host(host_).generation == generation_; }

  SimCore& core_;
  std::uint32_t host_;
  std::uint32_t generation_;
};

}  // namespace tributary::transport
