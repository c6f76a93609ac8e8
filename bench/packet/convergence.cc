// Shows how senders come to share a port, on virtual time: prints rates by time as CSV, which bench/packet/plot draws.
//   packet_convergence groups   two groups of four senders; the second comes half a second later, and leaves again
//   packet_convergence incast   64 senders that all begin at the same time
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/packet/sim_packets.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kReceiver = 1;
constexpr std::size_t kFrameBytes = 1280;  // one packet, with its header
constexpr double kRate = 1.25e8;           // 1 Gbit/s

class Sender final : public ChannelHandler {
 public:
  void on_open(Channel&) override { feed(); }
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{}; }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_sent(Channel&, std::uint64_t) override {
    bytes += kFrameBytes;
    feed();
  }
  void on_closed(Channel&, const Error&) override {}
  void feed() {
    FrameHeader header;
    header.type = FrameType::contribution;
    while (channel && channel->send(header, payload_, 0)) {
    }
  }
  std::uint64_t bytes = 0;  // acknowledged bytes
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_ = std::vector<std::byte>(kFrameBytes);
};

class Sinks final : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channels_.push_back(std::move(channel));
    return this;
  }
  Placement on_header(Channel&, const FrameHeader& header) override {
    return Accept{std::span(place_).first(header.payload_bytes)};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_closed(Channel&, const Error&) override {}

 private:
  std::vector<std::byte> place_ = std::vector<std::byte>(kFrameBytes);
  std::vector<std::unique_ptr<Channel>> channels_;
};

class Port {
 public:
  explicit Port(const LinkSettings& link)
      : network_(1, link), server_(network_.opener(kReceiver), {}, network_.time()) {
    listener_ = server_.listen({SimPackets::host(kReceiver), 0}, sinks_).value();
  }
  void add() {
    PacketSettings settings;
    settings.seed = 100 + senders_.size();
    settings.frames_queued_max = 2048;
    const auto number = static_cast<std::uint8_t>(senders_.size() + 2);
    transports_.push_back(std::make_unique<PacketTransport>(network_.opener(number), settings, network_.time()));
    senders_.push_back(std::make_unique<Sender>());
    senders_.back()->channel = transports_.back()->connect(listener_->local(), *senders_.back(), 20s);
  }
  void remove(std::size_t which) { senders_[which]->channel->close(); }
  /// Returns the rate of each sender in the next `time`, in bit/s.
  std::vector<double> rates(Duration time) {
    std::vector<std::uint64_t> before;
    for (const auto& sender : senders_) before.push_back(sender->bytes);
    std::vector<PacketTransport*> all{&server_};
    for (const auto& transport : transports_) all.push_back(transport.get());
    network_.run_until(all, [] { return false; }, time);
    std::vector<double> rates;
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      rates.push_back(static_cast<double>(senders_[i]->bytes - before[i]) * 8 /
                      std::chrono::duration<double>(time).count());
    }
    return rates;
  }
  [[nodiscard]] std::size_t queued() const { return network_.queued(kReceiver); }

 private:
  SimPackets network_;
  PacketTransport server_;
  Sinks sinks_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<PacketTransport>> transports_;
};

/// Returns Jain's index of the rates: 1 when all rates are equal.
double fairness(const std::vector<double>& rates) {
  double sum = 0;
  double squares = 0;
  for (const double rate : rates) {
    sum += rate;
    squares += rate * rate;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(rates.size()) * squares);
}

double sum(const std::vector<double>& rates, std::size_t from, std::size_t to) {
  double all = 0;
  for (std::size_t i = from; i < std::min(to, rates.size()); ++i) all += rates[i];
  return all;
}

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

void groups() {
  Port port({.bytes_per_second = kRate, .queue_bytes = 400'000, .mark_bytes = 60'000});
  std::puts("seconds,first_bits_per_second,second_bits_per_second,fairness");
  constexpr Duration kSlice = 10ms;
  for (int i = 0; i < 4; ++i) port.add();
  for (int slice = 0; slice < 150; ++slice) {
    if (slice == 50) {
      for (int i = 0; i < 4; ++i) port.add();
    }
    if (slice == 100) {
      for (std::size_t i = 4; i < 8; ++i) port.remove(i);
    }
    auto rates = port.rates(kSlice);
    const double second = sum(rates, 4, 8);
    if (slice < 50 || slice > 100) rates.resize(4);
    std::printf("%.2f,%.0f,%.0f,%.4f\n", seconds((slice + 1) * kSlice), sum(rates, 0, 4), second, fairness(rates));
  }
}

void incast() {
  Port port({.bytes_per_second = kRate, .queue_bytes = 150'000, .mark_bytes = 40'000});
  for (int i = 0; i < 64; ++i) port.add();
  std::puts("seconds,bits_per_second,least_share,most_share,fairness,queued_bytes");
  constexpr Duration kSlice = 50ms;  // enough for some packets of each sender
  for (int slice = 0; slice < 40; ++slice) {
    const auto rates = port.rates(kSlice);
    const double all = sum(rates, 0, 64);
    const auto [least, most] = std::ranges::minmax(rates);
    std::printf("%.2f,%.0f,%.3f,%.3f,%.4f,%zu\n", seconds((slice + 1) * kSlice), all, all == 0 ? 0 : least * 64 / all,
                all == 0 ? 0 : most * 64 / all, fairness(rates), port.queued());
  }
}

}  // namespace
}  // namespace tributary::transport::packet::test

int main(int count, char** words) {
  const std::string what = count == 2 ? words[1] : "";
  if (what == "groups") return tributary::transport::packet::test::groups(), 0;
  if (what == "incast") return tributary::transport::packet::test::incast(), 0;
  std::fputs("packet_convergence groups|incast\n", stderr);
  return 64;
}
