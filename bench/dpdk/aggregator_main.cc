// A root aggregator's data path by the packet protocol: DpdkTransport below, the engine's lane above, as in a worker of
// the daemon. The first CHILDREN connections are the lane's children, in the order in which they come.
//   dpdk_aggregator_bench DEVICE ADDRESS/PREFIX PORT CORE CHILDREN WINDOW SEGMENT_BYTES
// At the end it tells what a packet has cost while there was work.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "aggregator/engine/lane.h"
#include "tributary/transport/dpdk.h"

namespace {

using namespace tributary;
using namespace tributary::transport;

volatile std::sig_atomic_t over = 0;

class Root final : public Acceptor, public engine::LaneOutput {
 public:
  explicit Root(const engine::LaneShape& shape) : lane_(shape, 0) {}

  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    const auto number = static_cast<std::uint32_t>(children_.size());
    if (number == lane_.shape().children) return nullptr;
    children_.push_back(std::make_unique<Child>(*this, number, std::move(channel)));
    return children_.back().get();
  }
  void to_parent(const FrameHeader&, std::span<const std::byte>) override {}
  void to_child(std::uint32_t child, const FrameHeader& header, std::span<const std::byte> payload) override {
    if (!children_[child]->channel->send(header, payload, 0)) die("a queue is full");
  }
  void give_back(std::uint32_t child, std::span<const std::byte> payload) override {
    children_[child]->channel->give_back(payload);
  }
  void fault(std::uint32_t, std::uint32_t, MismatchReport) override { die("the children disagree"); }
  [[nodiscard]] std::uint64_t segments() const noexcept { return lane_.segments_completed(); }

 private:
  struct Child final : ChannelHandler {
    Child(Root& root_of, std::uint32_t number_of, std::unique_ptr<Channel> its)
        : root(root_of), number(number_of), channel(std::move(its)) {}
    Placement on_header(Channel&, const FrameHeader& header) override {
      const auto place = root.lane_.contribution_begins(number, header);
      if (!place) return Reject{{Errc::corrupt, std::string(to_string(place.error()))}};
      return Accept{*place};
    }
    bool takes_in_place(Channel&, const FrameHeader& header) override {
      return taken = root.lane_.takes_in_place(number, header);
    }
    void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
      const auto in_place = std::exchange(taken, false) ? std::span<const std::byte>(payload) : decltype(payload){};
      if (!root.lane_.contribution_landed(number, header, root, in_place)) die("a contribution does not fit");
    }
    void on_closed(Channel&, const Error& error) override { die(error.message.c_str()); }
    Root& root;
    const std::uint32_t number;
    const std::unique_ptr<Channel> channel;
    bool taken = false;
  };
  static void die(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
  }
  engine::Lane lane_;
  std::vector<std::unique_ptr<Child>> children_;
};

int serve(char** a) {
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(a[i], nullptr, 10)); };
  auto device = DpdkDevice::open({.device = a[1], .addresses = {a[2]}});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  Root root({.children = number(5), .window = number(6), .segment_bytes = number(7), .ranks = number(5), .root = true});
  std::uint64_t busy = 0;
  std::uint64_t turns = 0;
  DpdkStatistics told;
  {
    DpdkTransport transport(*device, {.core = static_cast<int>(number(4))});
    const auto listener = transport.listen({{}, static_cast<std::uint16_t>(number(3))}, root);
    if (!listener) return std::fprintf(stderr, "%s\n", listener.error().message.c_str()), 1;
    while (over == 0) {
      const std::uint64_t begin = __builtin_ia32_rdtsc();
      if (transport.poll(Duration{}) == 0) continue;
      busy += __builtin_ia32_rdtsc() - begin;
      ++turns;
    }
    told = transport.statistics();
  }
  const auto packets = static_cast<double>(std::max<std::uint64_t>(told.packets_received, 1));
  std::printf("packets received %llu, sent %llu, again %llu; %.1f a turn; %.0f cycles a packet received, busy turns\n",
              static_cast<unsigned long long>(told.packets_received),
              static_cast<unsigned long long>(told.packets_sent),
              static_cast<unsigned long long>(told.packets_sent_again),
              packets / static_cast<double>(std::max<std::uint64_t>(turns, 1)), static_cast<double>(busy) / packets);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 8) return 64;
  std::signal(SIGTERM, [](int) { over = 1; });
  std::signal(SIGINT, [](int) { over = 1; });
  return serve(arguments);
}
