// A process with a token for one group attacks a worker that also serves another group. It sends frames of every kind,
// in any order, at any time. The worker must neither crash nor hang, and the other group's sums must be right to the
// end.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tributary/transport/channel.h"

using namespace tributary;

namespace {

constexpr std::uint32_t kSegmentBytes = 256;
constexpr std::uint16_t kWindow = 4;
constexpr std::uint64_t kHostileGroup = 1, kHonestGroup = 2;

/// The worker's transport: its time comes from the input, and it makes no connections.
class StillTransport final : public transport::Transport {
 public:
  Result<std::unique_ptr<transport::Listener>> listen(const Endpoint&, transport::Acceptor&) override {
    return fail(Errc::unsupported, "nobody listens here");
  }
  std::unique_ptr<transport::Channel> connect(const Endpoint&, transport::ChannelHandler&,
                                              transport::Duration) override {
    std::abort();  // this worker is the root of both groups
  }
  std::size_t poll(transport::Duration) override { return 0; }
  [[nodiscard]] transport::TimePoint now() const override { return now_; }
  void post(std::function<void()>) override {}
  void advance(transport::Duration by) { now_ += by; }

 private:
  transport::TimePoint now_{std::chrono::seconds(1)};
};

/// The worker's side of one connection; the owner of this object plays the network and the child.
class Wire {
 public:
  struct Sent {
    FrameHeader header;
    std::vector<std::byte> payload;
  };

  class Channel final : public transport::Channel {
   public:
    explicit Channel(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
    ~Channel() override { close(); }
    bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override {
      if (wire_->closed_ || wire_->unacknowledged_.size() >= 1024) return false;
      send_copy(header, payload);
      wire_->unacknowledged_.push_back(cookie);
      return true;
    }
    void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
      if (!wire_->closed_) wire_->received.push_back({header, {payload.begin(), payload.end()}});
    }
    void resume() override { wire_->waiting_ = false; }
    void close() override { wire_->closed_ = true; }
    void close_after_flush(transport::Duration) override { wire_->closed_ = true; }
    [[nodiscard]] bool closed() const noexcept override { return wire_->closed_; }
    [[nodiscard]] std::string peer() const override { return "fuzz"; }

   private:
    std::shared_ptr<Wire> wire_;
  };

  static std::shared_ptr<Wire> join(aggregator::Worker& worker, std::uint64_t group, std::uint16_t child,
                                    std::uint16_t children) {
    auto wire = std::make_shared<Wire>();
    aggregator::VerifiedJoin join;
    join.claims.job = "fuzz";
    join.claims.aggregator = "fuzz";
    join.claims.group = group;
    join.claims.epoch = 1;
    join.claims.child = child;
    join.claims.children = children;
    join.claims.window = kWindow;
    join.claims.segment_bytes = kSegmentBytes;
    join.claims.rank = child;
    join.claims.ranks = children;
    join.claims.root = true;
    join.claims.expires_at = 2'000'000'000;
    worker.take(join, [&](transport::ChannelHandler& handler) {
      wire->handler_ = &handler;
      auto channel = std::make_unique<Channel>(wire);
      wire->channel_ = channel.get();
      return channel;
    });
    return wire;
  }

  /// Passes a frame to the worker, unless the worker has answered "not yet" to the previous frame or has closed the
  /// channel.
  void deliver(const FrameHeader& header, std::span<const std::byte> payload) {
    if (closed_ || waiting_) return;
    transport::Placement placement = handler_->on_header(*channel_, header);
    if (closed_) return;
    if (const auto* rejected = std::get_if<transport::Reject>(&placement)) {
      closed_ = true;
      handler_->on_closed(*channel_, rejected->error);
    } else if (auto* accepted = std::get_if<transport::Accept>(&placement)) {
      if (accepted->payload.size() != header.payload_bytes) std::abort();
      std::ranges::copy(payload.first(std::min(payload.size(), accepted->payload.size())), accepted->payload.begin());
      handler_->on_frame(*channel_, header, accepted->payload);
    } else {
      waiting_ = true;
    }
  }
  void acknowledge() {
    while (!unacknowledged_.empty() && !closed_) {
      const std::uint64_t cookie = unacknowledged_.front();
      unacknowledged_.pop_front();
      handler_->on_sent(*channel_, cookie);
    }
  }
  void cut() {
    if (closed_) return;
    closed_ = true;
    handler_->on_closed(*channel_, {Errc::peer_gone, "cut"});
  }
  [[nodiscard]] bool closed() const { return closed_; }

  std::deque<Sent> received;  // frames that the child has received

 private:
  transport::ChannelHandler* handler_ = nullptr;
  transport::Channel* channel_ = nullptr;
  std::deque<std::uint64_t> unacknowledged_;
  bool closed_ = false;
  bool waiting_ = false;
};

FrameHeader contribution(std::uint64_t group, std::uint64_t sequence, std::uint32_t elements) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.flags = frame_flags::kWantsResult;
  header.payload_bytes = elements * 4;
  header.epoch = 1;
  header.group = group;
  header.sequence = sequence;
  header.operation = sequence;
  header.count = elements;
  header.collective = Collective::all_reduce;
  header.dtype = DType::int32;
  header.op = ReduceOp::sum;
  return header;
}

/// Two children that obey the protocol, and compare every sum.
class HonestGroup {
 public:
  explicit HonestGroup(aggregator::Worker& worker)
      : wires_{Wire::join(worker, kHonestGroup, 0, 2), Wire::join(worker, kHonestGroup, 1, 2)} {}

  void reduce_one() {
    std::array<std::int32_t, 16> values{};
    for (std::size_t child = 0; child < wires_.size(); ++child) {
      values.fill(static_cast<std::int32_t>(sequence_ * 3 + child));
      wires_[child]->received.clear();
      wires_[child]->deliver(contribution(kHonestGroup, sequence_, values.size()), std::as_bytes(std::span(values)));
    }
    values.fill(static_cast<std::int32_t>(sequence_ * 6 + 1));
    for (const auto& wire : wires_) {
      if (wire->closed() || wire->received.empty()) std::abort();
      const Wire::Sent& result = wire->received.back();
      if (result.header.type != FrameType::result ||
          !std::ranges::equal(result.payload, std::as_bytes(std::span(values)))) {
        std::abort();
      }
      wire->acknowledge();
    }
    ++sequence_;
  }

 private:
  std::array<std::shared_ptr<Wire>, 2> wires_;
  std::uint64_t sequence_ = 0;
};

/// Reads the input; returns zeros after its end.
class Script {
 public:
  explicit Script(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool over() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::span<const std::byte> take(std::size_t wanted) {
    const auto taken = bytes_.first(std::min(wanted, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return std::as_bytes(taken);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script({data, size});
  StillTransport transport;
  aggregator::MemoryBudget budget(1U << 20);
  {
    aggregator::Worker worker(transport, budget, {.name = "fuzz"});
    std::array wires{Wire::join(worker, kHostileGroup, 0, 2), Wire::join(worker, kHostileGroup, 1, 2)};
    HonestGroup honest(worker);
    std::array<std::uint64_t, 2> next{};
    for (int steps = 0; !script.over() && steps < 256; ++steps) {
      const std::uint8_t choice = script.byte();
      const std::size_t child = choice & 1U;
      Wire& wire = *wires[child];
      switch (choice >> 1U & 7U) {
        case 0:  // 64 bytes, unchanged
        case 1: {
          std::array<std::byte, kFrameHeaderBytes> bytes{};
          std::ranges::copy(script.take(bytes.size()), bytes.begin());
          if (const auto header = decode(bytes)) wire.deliver(*header, script.take(header->payload_bytes));
          break;
        }
        case 2:  // a correct contribution with one wrong byte
        case 3: {
          std::array<std::byte, kFrameHeaderBytes> bytes{};
          encode(contribution(kHostileGroup, next[child], 1 + script.byte() % 64), bytes);
          bytes[script.byte() % bytes.size()] ^= static_cast<std::byte>(script.byte());
          if (const auto header = decode(bytes)) wire.deliver(*header, script.take(8));
          break;
        }
        case 4:  // a correct contribution
          wire.deliver(contribution(kHostileGroup, next[child]++, 1 + script.byte() % 64), script.take(8));
          break;
        case 5:
          wire.acknowledge();
          break;
        case 6:
          transport.advance(std::chrono::milliseconds(script.byte() * 256));
          worker.tick(transport.now());
          break;
        default:
          if (script.byte() < 16) wire.cut();
          honest.reduce_one();
      }
    }
    honest.reduce_one();
  }
  if (budget.in_use() != 0) std::abort();
  return 0;
}
