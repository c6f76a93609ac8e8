// Strangers on the data port send floods or garbage, or are silent. Honest groups do not notice it, and no memory stays
// used.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/system/aggregator/daemon_rig.h"
#include "tests/unit/transport/shm_stranger.h"
#include "tributary/transport/near.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsTelling = false;  // sanitizers keep freed memory
#else
constexpr bool kMemoryIsTelling = true;
#endif
constexpr std::uint64_t kResidentSlack = 4U << 20;

Bytes frame(const FrameHeader& header, const Bytes& payload = {}) {
  Bytes bytes(kFrameHeaderBytes);
  encode(header, std::span<std::byte, kFrameHeaderBytes>(bytes.data(), kFrameHeaderBytes));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Bytes random_bytes(std::size_t size, std::mt19937& random) {
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

class DaemonHostile : public DaemonTest {
 protected:
  void SetUp() override {
    root_ = &aggregator("root", {"--config", folder_.write("a.yaml", "join_limit: 1s\nunjoined_max: 64\n")});
    expect_serves(*root_);
    expect_all_gone();
    files_ = root_->process.open_files();
  }
  void TearDown() override {
    expect_all_gone();
    expect_serves(*root_);
    ASSERT_EQ(root_->terminate(), 0) << root_->process.output();
  }
  void expect_all_gone() {
    EXPECT_TRUE(
        eventually([&] { return root_->metric("connections_unjoined") == 0 && root_->metric("sessions_open") == 0; }));
    EXPECT_TRUE(eventually([&] { return files_ == 0 || root_->process.open_files() <= files_; }))
        << root_->process.open_files() << " of " << files_;
    EXPECT_EQ(root_->memory_reserved(), 0U);
  }
  DaemonProcess* root_ = nullptr;
  std::size_t files_ = 0;
};

TEST_F(DaemonHostile, BytesThatAreNoFrameCloseTheConnection) {
  std::mt19937 random(1);
  std::vector<Bytes> garbage;
  for (int i = 0; i < 50; ++i) garbage.push_back(random_bytes(64 + random() % 4096, random));
  const std::string http = "GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: somebody who has mistaken the port\r\n\r\n";
  const auto text = std::as_bytes(std::span(http));
  garbage.emplace_back(text.begin(), text.end());
  FrameHeader lies;
  lies.payload_bytes = 0xFFFFFFFF;
  garbage.push_back(frame(lies));
  lies = {};
  lies.version = 99;
  garbage.push_back(frame(lies));
  for (const Bytes& bytes : garbage) {
    const RawSocket socket(root_->data_port);
    socket.send(bytes);
    EXPECT_TRUE(socket.closed_by_peer());
  }
  const auto all = static_cast<double>(garbage.size());
  EXPECT_TRUE(eventually([&] { return root_->metric("connections_rejected_total", "malformed") == all; }))
      << "it is counted once it is closed: " << root_->metric("connections_rejected_total", "malformed");
}

TEST_F(DaemonHostile, FramesOfEveryOtherTypeBeforeAJoinCloseTheConnection) {
  for (unsigned type = 0; type < 256; ++type) {
    FrameHeader header;
    header.type = static_cast<FrameType>(type);
    if (header.type == FrameType::join) continue;
    const RawSocket socket(root_->data_port);
    socket.send(frame(header));
    ASSERT_TRUE(socket.closed_by_peer()) << type;
  }
}

TEST_F(DaemonHostile, HalfAJoinAndSilenceAreClosedInTime) {
  const RawSocket silent(root_->data_port);
  const RawSocket half(root_->data_port);
  FrameHeader header;
  header.type = FrameType::join;
  header.payload_bytes = 320;
  const Bytes whole = frame(header);
  half.send(std::span(whole).first(40));
  const RawSocket without_payload(root_->data_port);
  without_payload.send(frame(header, Bytes(100)));
  for (const RawSocket* socket : {&silent, &half, &without_payload}) {
    EXPECT_THAT(socket->read_to_end(), HasSubstr("no join came in time"));
  }
}

TEST_F(DaemonHostile, FramesBehindAJoinBeforeReadyAreRefused) {
  ++epoch_;
  const Bytes join = join_of({claims_of("root", 0, 1)});
  FrameHeader header;
  header.type = FrameType::join;
  header.payload_bytes = static_cast<std::uint32_t>(join.size());
  Bytes both = frame(header, join);
  header.type = FrameType::leave;
  header.payload_bytes = 0;
  const Bytes eager = frame(header);
  both.insert(both.end(), eager.begin(), eager.end());
  const RawSocket socket(root_->data_port);
  socket.send(both);
  EXPECT_THAT(socket.read_to_end(), HasSubstr("frames came with the join"));
}

TEST_F(DaemonHostile, AFloodOfAThousandSilentConnectionsKeepsNobodyOut) {
  std::uint64_t resident_first = 0;
  for (int round = 0; round < 6; ++round) {
    const double accepted = root_->metric("connections_accepted_total");
    std::vector<RawSocket> flood;
    for (int i = 0; i < 1000; ++i) {
      flood.emplace_back(root_->data_port);
      ASSERT_TRUE(flood.back().connected()) << i;
    }
    ASSERT_TRUE(eventually([&] { return root_->metric("connections_accepted_total") >= accepted + 1000; }));
    EXPECT_LE(root_->metric("connections_unjoined"), 64);
    EXPECT_LE(root_->process.open_files(), files_ + 64 + 16);
    expect_serves(*root_);
    flood.clear();
    expect_all_gone();
    if (round == 1) resident_first = root_->process.resident_bytes();
  }
  if (kMemoryIsTelling) {
    EXPECT_LE(root_->process.resident_bytes(), resident_first + kResidentSlack);
  }
}

TEST_F(DaemonHostile, AFloodOfBadJoinsKeepsNobodyOutAndLeavesNothing) {
  std::mt19937 random(2);
  ++epoch_;
  const Bytes good = join_of({claims_of("root", 0, 1)});
  FrameHeader header;
  header.type = FrameType::join;
  header.payload_bytes = static_cast<std::uint32_t>(good.size());
  std::uint64_t resident_first = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<RawSocket> flood;
    for (int i = 0; i < 500; ++i) {
      Bytes join = good;
      join[random() % join.size()] ^= std::byte{0x40};
      flood.emplace_back(root_->data_port);
      flood.back().send(frame(header, join));
    }
    expect_serves(*root_);
    flood.clear();
    expect_all_gone();
    if (round == 1) resident_first = root_->process.resident_bytes();
  }
  EXPECT_GE(root_->metric("connections_rejected_total"), 3000);
  EXPECT_GE(root_->metric("connections_rejected_total", "denied"), 100);
  if (kMemoryIsTelling) {
    EXPECT_LE(root_->process.resident_bytes(), resident_first + kResidentSlack);
  }
}

/// Connects from one loopback address, sends a join, and closes, this many times a second.
class JoinFlood {
 public:
  JoinFlood(std::uint16_t port, const char* from, std::uint64_t per_second, Bytes join)
      : port_(port),
        from_(from),
        period_(std::chrono::nanoseconds(1'000'000'000 / per_second)),
        join_(std::move(join)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  void run(const std::stop_token& stop) {
    auto due = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_until(due += period_);  // keeps the rate; no step waits for this sleep
      const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in from{}, to{};
      from.sin_family = to.sin_family = AF_INET;
      ::inet_pton(AF_INET, from_, &from.sin_addr);
      ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
      to.sin_port = htons(port_);
      if (::bind(socket, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
          ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
          ::send(socket, join_.data(), join_.size(), MSG_NOSIGNAL) > 0) {
        ++sent_;
      }
      open_.push_back(socket);
      if (open_.size() > 50) {
        ::close(open_.front());
        open_.pop_front();
      }
    }
    for (const int socket : open_) ::close(socket);
  }
  const std::uint16_t port_;
  const char* const from_;
  const std::chrono::nanoseconds period_;
  const Bytes join_;
  std::deque<int> open_;
  std::atomic<std::uint64_t> sent_{0};
  std::jthread thread_;
};

TEST_F(DaemonHostile, AFloodOfForgedJoinsHoldsNobodyUp) {
  // Joins per second; the variable sets another number for measurements.
  const char* const rates = std::getenv("TRIBUTARY_FORGED_JOINS");
  const std::uint64_t rate = rates == nullptr ? 700 : std::strtoull(rates, nullptr, 10);
  Bytes join = join_of({claims_of("root", 0, 1)});
  // Change only the signature.
  join.back() ^= std::byte{0x40};
  FrameHeader header;
  header.type = FrameType::join;
  header.payload_bytes = static_cast<std::uint32_t>(join.size());
  for (const char* const from : {"127.0.0.1", "127.0.0.2"}) {
    std::vector<std::chrono::milliseconds> took;
    double per_second = 0;
    {
      const JoinFlood flood(root_->data_port, from, rate, frame(header, join));
      ASSERT_TRUE(eventually([&] { return flood.sent() >= std::min<std::uint64_t>(rate, 500); }));
      const auto begun = std::chrono::steady_clock::now();
      const std::uint64_t before = flood.sent();
      for (int i = 0; i < 20; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const auto ranks = lane_of(*root_, 8);
        took.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start));
        for (Child* const rank : ranks) rank->leave();
        EXPECT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* rank) { return !!rank->closed; }); }));
      }
      const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begun;
      per_second = static_cast<double>(flood.sent() - before) / all.count();
    }
    std::ranges::sort(took);
    std::printf("%.0f forged joins a second from %s: a lane of 8 is ready after %lld ms, %lld at most\n", per_second,
                from, static_cast<long long>(took[took.size() / 2].count()),
                static_cast<long long>(took.back().count()));
    EXPECT_LT(took.back(), std::chrono::seconds(5));
  }
}

TEST_F(DaemonHostile, GarbageInTheSharedMemoryAfterAValidJoinEndsThatLaneAndNoOther) {
  using transport::test::ShmStranger;
  std::mt19937 random(4);
  transport::NearTransport near;  // the honest ranks come through shared memory, too
  std::deque<std::unique_ptr<Child>> honest;
  ++epoch_;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    honest.push_back(std::make_unique<Child>(near, root_->endpoint(), join_of({claims_of("root", rank, 2)}), epoch_));
  }
  const auto settles = [&](const std::function<bool()>& done) {
    return run_until([&] {
      near.poll({});
      return done();
    });
  };
  ASSERT_TRUE(settles([&] { return honest[0]->ready && honest[1]->ready; }));
  ASSERT_EQ(near.shm_statistics().connections, 2U);
  for (int round = 0; round < 60; ++round) {
    ++epoch_;
    TokenClaims claims = claims_of("root", 0, 2);
    claims.group = kGroup + 1;
    ShmStranger hostile(to_string(root_->endpoint()));
    ASSERT_TRUE(hostile.socket.is_open());
    ASSERT_TRUE(settles([&] { return hostile.take_offer(); }));
    hostile.say_mapped();
    ASSERT_TRUE(settles([&] { return hostile.hear_go(); }));
    FrameHeader header;
    header.type = FrameType::join;
    hostile.write_frame(header, join_of({claims}));
    claims.child = 1;
    Child& other = child(root_->endpoint(), join_of({claims}));
    ASSERT_TRUE(settles([&] { return other.ready; })) << other.refused.value_or("");
    header.type = FrameType::contribution;
    header.group = claims.group;
    header.epoch = epoch_;
    header.set_signature({Collective::all_reduce, DType::uint8, ReduceOp::sum, 0, 16384});
    switch (round % 5) {
      case 0:
        hostile.write_garbage(5, static_cast<int>(random() % 256));
        break;
      case 1:
        hostile.memory->mine().written.store((std::uint64_t{random()} << 32U) + random());
        break;
      case 2:  // the aggregator reads the frame in place, and the frame never becomes complete
        hostile.write_frame(header, random_bytes(16384, random), 3);
        hostile.socket.reset();
        break;
      case 3:  // the aggregator reads the frame in place and keeps it; the sender then changes it
        hostile.write_frame(header, random_bytes(16384, random));
        settles([&] { return hostile.memory->theirs().read.load() > 0; });
        hostile.write_garbage(1, 0);
        break;
      default:  // false positions, which the aggregator does not believe; and a frame beyond the window
        hostile.their_side().read.store(random());
        hostile.their_side().written.store(random());
        header.sequence = 1000;
        hostile.write_frame(header, random_bytes(64, random));
        break;
    }
    if (hostile.socket.is_open()) hostile.ring();
    ASSERT_TRUE(settles([&] { return other.failed.has_value() && other.closed.has_value(); })) << round;
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) honest[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  EXPECT_TRUE(settles([&] { return honest[0]->results.size() == 1 && honest[1]->results.size() == 1; }));
  for (const auto& rank : honest) rank->leave();
  EXPECT_TRUE(settles([&] { return honest[0]->closed && honest[1]->closed; }));
  EXPECT_GT(root_->metric("shm_corrupt_total"), 0);
}

TEST_F(DaemonHostile, GarbageAfterAValidJoinEndsThatLaneAndNoOther) {
  std::mt19937 random(3);
  const auto honest = lane_of(*root_, 2);
  std::uint64_t resident_first = 0;
  for (int round = 0; round < 60; ++round) {
    ++epoch_;
    TokenClaims claims = claims_of("root", 0, 2);
    claims.group = kGroup + 1;
    const Bytes join = join_of({claims});
    FrameHeader header;
    header.type = FrameType::join;
    header.payload_bytes = static_cast<std::uint32_t>(join.size());
    RawSocket hostile(root_->data_port);
    hostile.send(frame(header, join));
    claims.child = 1;
    Child& other = child(root_->endpoint(), join_of({claims}));
    ASSERT_TRUE(run_until([&] { return other.ready; })) << other.refused.value_or("");
    FrameHeader contribution;
    contribution.type = FrameType::contribution;
    contribution.group = claims.group;
    contribution.epoch = epoch_;
    contribution.payload_bytes = 64;
    switch (round % 3) {
      case 0:
        hostile.send(random_bytes(200, random));
        break;
      case 1:
        contribution.sequence = 1000;
        hostile.send(frame(contribution, Bytes(64)));
        break;
      default:
        hostile.send(frame(contribution, random_bytes(10, random)));  // the rest never follows
        break;
    }
    if (round % 3 == 2) hostile.close();
    ASSERT_TRUE(run_until([&] { return other.failed.has_value() && other.closed.has_value(); })) << round;
    if (round == 20) resident_first = root_->process.resident_bytes();
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) honest[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  EXPECT_TRUE(run_until([&] { return honest[0]->results.size() == 1 && honest[1]->results.size() == 1; }));
  for (Child* rank : honest) rank->leave();
  EXPECT_TRUE(run_until([&] { return honest[0]->closed && honest[1]->closed; }));
  if (kMemoryIsTelling) {
    EXPECT_LE(root_->process.resident_bytes(), resident_first + kResidentSlack);
  }
}

}  // namespace
}  // namespace tributary::aggregator::test
