#pragma once
// Workers and hand-made children in one simulated network: real frames, real tokens, virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tributary/transport/sim_network.h"

namespace tributary::aggregator::test {

using Bytes = std::vector<std::byte>;
inline constexpr std::uint64_t kGroup = 4711;
inline constexpr std::uint32_t kEpoch = 3;
inline constexpr std::uint32_t kSegmentBytes = 1024;
inline constexpr std::uint16_t kWindow = 4;
inline constexpr std::uint16_t kPort = 7471;

/// A rank, or whoever claims to be one: it does what the test says and records what it is told.
class Child final : public transport::ChannelHandler {
 public:
  struct Result {
    FrameHeader header;
    Bytes payload;
  };

  /// Connects and sends `join` as the payload of a join frame; with an empty one it says nothing.
  Child(transport::Transport& transport, const Endpoint& to, const Bytes& join, std::uint32_t epoch);

  void send(FrameHeader header, Bytes payload = {});
  /// Segment `sequence`, one segment an operation, wanting the result.
  void contribute(std::uint64_t sequence, const Signature& signature, Bytes payload,
                  std::uint16_t flags = frame_flags::kWantsResult);
  void leave();
  void close() { channel_->close(); }
  [[nodiscard]] transport::Channel& channel() { return *channel_; }
  [[nodiscard]] const Result* result_of(std::uint64_t sequence) const;

  bool ready = false;
  std::deque<Result> results;
  std::optional<std::string> refused, failed;
  std::optional<MismatchReport> fault;
  std::optional<Error> closed;

  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override;
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel&, const Error& error) override { closed = error; }

 private:
  const std::uint32_t epoch_;
  std::deque<Bytes> borrowed_;  // what has been sent, kept to the end
  Bytes incoming_;
  std::unique_ptr<transport::Channel> channel_;
};

/// One aggregator process: a worker that listens, polls and ticks.
class Host {
 public:
  Host(transport::SimNetwork& network, const TokenVerifier& verifier, const std::int64_t& now_s, std::string name,
       std::uint64_t memory_bytes, WorkerSettings settings);
  ~Host();

  std::string name;
  MemoryBudget budget;
  std::unique_ptr<Worker> worker;
  [[nodiscard]] Endpoint endpoint() const { return {name, kPort}; }

 private:
  transport::SimNetwork& network_;
  transport::Transport& transport_;
  std::unique_ptr<transport::Listener> listener_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest();

  Host& aggregator(const std::string& name, std::uint64_t memory_bytes = 64U << 20, WorkerSettings settings = {});
  /// A child's claims on a root with `children` children that are all ranks.
  [[nodiscard]] TokenClaims claims_of(const std::string& aggregator, std::uint16_t child, std::uint16_t children) const;
  [[nodiscard]] Bytes join_of(const std::vector<TokenClaims>& chain) const;
  Child& child(const std::string& host, const Endpoint& to, const Bytes& join);
  /// All children of one lane on one root, joined and ready.
  std::vector<Child*> lane_of(Host& root, std::uint16_t children);
  /// Ranks 0 to 2 * width - 1 below two leaves below one root, joined and ready.
  std::vector<Child*> two_levels(Host& left, Host& right, Host& root, std::uint16_t width);

  bool run_until(const std::function<bool()>& done, transport::Duration limit = std::chrono::seconds(10));
  void next_epoch() { ++epoch_; }
  /// Whatever is under way arrives; no timer that matters has run out after it.
  void settle() { network_.run_for(std::chrono::milliseconds(300)); }
  [[nodiscard]] std::string refusal_of(Host& host, const Bytes& join);
  void expect_all_given_back(Host& host);

  transport::SimNetwork network_;
  SigningKey key_;
  TokenVerifier verifier_;
  std::int64_t now_s_ = 1'700'000'000;
  std::uint32_t epoch_ = kEpoch;  // of the lanes that are made from now on
  std::map<std::string, std::unique_ptr<Host>> hosts_;
  std::deque<std::unique_ptr<Child>> children_;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Differs in every element of every rank and sequence; sums of it are not exact, so a wrong order shows.
std::vector<float> floats(std::uint32_t rank, std::size_t count, std::uint64_t sequence = 0);
/// The sum in the order given.
std::vector<float> sum_of(const std::vector<std::vector<float>>& inputs);

inline constexpr Signature kSum{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 16};
inline constexpr Signature kMax{Collective::all_reduce, DType::float32, ReduceOp::max, 0, 16};

}  // namespace tributary::aggregator::test
