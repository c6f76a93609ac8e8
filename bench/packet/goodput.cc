// Sends one stream of frames over the packet protocol or TCP for some seconds, and prints the rate of arriving bytes,
// each second and in all. It runs as two processes, so that each may be in its own network namespace
// (bench/packet/loss).
//   packet_goodput serve udp|tcp ADDRESS:PORT
//   packet_goodput send udp|tcp ADDRESS:PORT SECONDS
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tributary/transport/tcp.h"
#include "tributary/transport/udp.h"

namespace tributary::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFrameBytes = 65536;
constexpr std::uint64_t kWindow = 64;  // frames in the queue, more than any path in this benchmark holds

std::unique_ptr<Transport> make(const std::string& name) {
  // Turns offloads off, because a lossy link must drop single packets, not batches that an offload has joined.
  if (name == "udp") return std::make_unique<UdpTransport>(UdpSettings{.datagram_bytes_max = 1472, .offloads = false});
  return std::make_unique<TcpTransport>();
}

/// Counts the bytes that arrive, and tells the other side the count at the end.
class Sink final : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channel_ = std::move(channel);
    bytes_ = 0;
    return this;
  }
  Placement on_header(Channel&, const FrameHeader& header) override {
    return Accept{std::span(place_).first(header.payload_bytes)};
  }
  void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override {
    bytes_ += payload.size();
    FrameHeader told = header;
    told.count = bytes_;
    channel.send_copy(told, {});
  }
  void on_closed(Channel&, const Error&) override {}

 private:
  std::vector<std::byte> place_ = std::vector<std::byte>(kFrameBytes);
  std::unique_ptr<Channel> channel_;
  std::uint64_t bytes_ = 0;
};

class Stream final : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{}; }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte>) override { arrived = header.count; }
  void on_sent(Channel&, std::uint64_t) override { --queued; }
  void on_closed(Channel&, const Error& error) override {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::exit(1);
  }
  std::uint64_t arrived = 0;
  std::uint64_t queued = 0;
};

int serve(const std::string& name, const Endpoint& at) {
  const auto transport = make(name);
  Sink sink;
  const auto listener = transport->listen(at, sink);
  if (!listener) {
    std::fprintf(stderr, "%s\n", listener.error().message.c_str());
    return 1;
  }
  for (;;) transport->poll(100ms);
}

int send(const std::string& name, const Endpoint& to, double seconds) {
  const auto transport = make(name);
  Stream stream;
  const auto channel = transport->connect(to, stream, 10s);
  const std::vector<std::byte> payload(kFrameBytes, std::byte{1});
  FrameHeader header;
  header.type = FrameType::contribution;
  const auto feed_until = [&](TimePoint end) {
    while (Clock::now() < end) {
      while (stream.queued < kWindow && channel->send(header, payload, 0)) ++stream.queued;
      transport->poll(1ms);
    }
  };
  feed_until(Clock::now() + 500ms);  // after this time the sender has found its rate
  const TimePoint begin = Clock::now();
  const std::uint64_t before = stream.arrived;
  feed_until(begin + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%.0f\n", static_cast<double>(stream.arrived - before) * 8 / took);  // bit/s
  std::fflush(stdout);
  std::_Exit(0);  // do not wait for frames that are still queued
}

}  // namespace
}  // namespace tributary::transport

int main(int count, char** words) {
  using namespace tributary;
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(words + 1, words + count);
  const bool sends = arguments.size() == 4 && arguments[0] == "send";
  const bool serves = arguments.size() == 3 && arguments[0] == "serve";
  if (!sends && !serves) {
    std::fprintf(stderr,
                 "packet_goodput serve udp|tcp ADDRESS:PORT\npacket_goodput send udp|tcp ADDRESS:PORT SECONDS\n");
    return 64;
  }
  const auto at = parse_endpoint(arguments[2]);
  if (!at) {
    std::fprintf(stderr, "%s\n", at.error().message.c_str());
    return 64;
  }
  return serves ? transport::serve(arguments[1], *at)
                : transport::send(arguments[1], *at, std::atof(arguments[3].c_str()));
}
