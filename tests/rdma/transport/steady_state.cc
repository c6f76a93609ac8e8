// Two transports that answer each other with small and large payloads, and poll without sleeping. The process also has
// TCP, with an idle connection. A tracer (steady_state_test.py) counts the system calls between the two calls of
// getppid(). The program prints the counts of the transports.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"
#include "tributary/transport/verbs_beside_tcp.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kSmallBytes = 64, kLargeBytes = 64U << 10;

/// Answers each frame with a frame from memory that stays registered. The asking side expects the answers; the other
/// side takes questions without a copy.
class Answerer final : public ChannelHandler {
 public:
  explicit Answerer(Transport& transport)
      : out_(kLargeBytes),
        in_(kLargeBytes),
        kept_out_(transport.keep_registered(out_)),
        kept_in_(transport.keep_registered(in_)) {}
  Placement on_header(Channel&, const FrameHeader& header) override {
    return Accept{std::span(in_).first(header.payload_bytes)};
  }
  bool takes_in_place(Channel&, const FrameHeader&) override { return answers; }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    ++frames;
    if (answers) say(header.sequence + 1);
    if (answers && payload.size() == kLargeBytes) channel->give_back(payload);
  }
  void on_closed(Channel&, const Error& error) override {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::exit(1);
  }
  /// Small and large frames take turns.
  void say(std::uint64_t sequence) {
    const std::size_t bytes = sequence / 2 % 2 == 0 ? kSmallBytes : kLargeBytes;
    if (!answers) {
      FrameHeader answer = header_of(sequence + 1);
      answer.payload_bytes = static_cast<std::uint32_t>(bytes);
      channel->expect(answer, std::span(in_).first(bytes));
    }
    if (!channel->send(header_of(sequence), std::span(out_).first(bytes), sequence)) std::exit(1);
  }
  bool answers = false;
  std::size_t frames = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> out_, in_;
  std::unique_ptr<KeptMemory> kept_out_, kept_in_;
};

class OneAcceptor final : public Acceptor {
 public:
  explicit OneAcceptor(Answerer& to) : to_(to) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    to_.channel = std::move(channel);
    to_.channel->make_room(4, kLargeBytes);
    return &to_;
  }

 private:
  Answerer& to_;
};

/// One end of the idle connection over TCP.
class Idle final : public ChannelHandler, public Acceptor {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
    channel = std::move(accepted);
    return this;
  }
  Placement on_header(Channel&, const FrameHeader&) override { return Accept{}; }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { heard = true; }
  void on_closed(Channel&, const Error& error) override {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::exit(1);
  }
  bool heard = false;
  std::unique_ptr<Channel> channel;
};

int run(std::size_t operations) {
  const auto make = [](const std::string& host) {
    return VerbsBesideTcp::create({.busy_poll = std::chrono::seconds(10), .bind_address = host}, {}).value();
  };
  auto server = make(rdma_hosts().front());
  auto client = make(rdma_hosts().back());
  Answerer answerer(*server), asker(*client);
  answerer.answers = true;
  OneAcceptor acceptor(answerer);
  const auto listener = server->listen({rdma_hosts().front(), 0}, acceptor).value();
  asker.channel = client->connect(listener->local(), asker, std::chrono::seconds(60));
  Idle star, point;
  const auto star_listener = server->second_way().listen({"127.0.0.1", 0}, star).value();
  point.channel = client->second_way().connect(star_listener->local(), point, std::chrono::seconds(60));
  point.channel->send_copy(header_of(0), {});
  while (!star.heard) {
    client->poll({});
    server->poll({});
  }
  std::uint64_t sequence = 0;
  const auto run_some = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, sequence += 2) {
      const std::size_t before = asker.frames;
      asker.say(sequence);
      while (asker.frames == before) {
        client->poll({});
        server->poll({});
      }
    }
  };
  run_some(400);  // after this, every memory window and every receive has been used
  const VerbsStatistics before[] = {server->statistics(), client->statistics()};
  static_cast<void>(::getppid());
  run_some(operations);
  static_cast<void>(::getppid());
  const VerbsStatistics after[] = {server->statistics(), client->statistics()};
  std::uint64_t posts = 0, sleeps = 0, copied = 0, written = 0, registrations = 0;
  for (int i = 0; i < 2; ++i) {
    posts += after[i].posts - before[i].posts;
    sleeps += after[i].sleeps - before[i].sleeps;
    copied += after[i].bytes_copied - before[i].bytes_copied;
    written += after[i].bytes_written - before[i].bytes_written;
    registrations += after[i].registrations - before[i].registrations;
  }
  // The transport copies each small payload into a ring and out of a ring; it never copies a large payload.
  std::printf("operations %zu posts %llu sleeps %llu registrations %llu written %llu copied %llu small %zu\n",
              operations, static_cast<unsigned long long>(posts), static_cast<unsigned long long>(sleeps),
              static_cast<unsigned long long>(registrations), static_cast<unsigned long long>(written),
              static_cast<unsigned long long>(copied), operations / 2 * 2 * 2 * kSmallBytes);
  return 0;
}

}  // namespace
}  // namespace tributary::transport::test

int main(int argc, char** argv) {
  return tributary::transport::test::run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200);
}
