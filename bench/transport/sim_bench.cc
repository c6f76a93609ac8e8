// Measures the number of events that SimNetwork handles in a second, with 100 hosts that exchange small frames.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "tributary/transport/sim_network.h"

namespace tributary::transport {
namespace {

using namespace std::chrono_literals;

/// Answers every frame with a frame.
class Talker : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{place_}; }
  void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte>) override {
    (void)channel.send(header, payload_, header.sequence);
  }
  void on_closed(Channel&, const Error&) override {}
  std::vector<std::unique_ptr<Channel>> channels;

 private:
  std::vector<std::byte> place_ = std::vector<std::byte>(256);
  std::vector<std::byte> payload_ = std::vector<std::byte>(256);
};

class Host : public Acceptor, public Talker {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channels.push_back(std::move(channel));
    return this;
  }
};

void events(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  SimNetwork network;
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::unique_ptr<Listener>> listeners;
  const auto name = [](std::size_t i) { return "host" + std::to_string(i); };
  for (std::size_t i = 0; i < count; ++i) {
    hosts.push_back(std::make_unique<Host>());
    listeners.push_back(network.transport(name(i)).listen({"", 1}, *hosts[i]).value());
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t hop : {1U, 7U, 19U}) {
      Host& host = *hosts[i];
      host.channels.push_back(network.transport(name(i)).connect({name((i + hop) % count), 1}, host, 1s));
      FrameHeader header;
      header.type = FrameType::contribution;
      const std::vector<std::byte> first(256);
      host.channels.back()->send_copy(header, first);
    }
  }
  network.run_for(1ms);
  for (auto _ : state) network.step();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.counters["frames_per_event"] =
      static_cast<double>(network.statistics().frames) / static_cast<double>(network.statistics().events);
}
BENCHMARK(events)->Arg(10)->Arg(100)->Arg(1000);

}  // namespace
}  // namespace tributary::transport
