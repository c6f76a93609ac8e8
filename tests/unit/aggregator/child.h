#pragma once
// A rank, or whoever claims to be one, over any transport: what the tests of the worker and of the daemon speak with.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/lane_loss.h"
#include "tributary/transport/channel.h"

namespace tributary::aggregator::test {

using Bytes = std::vector<std::byte>;
inline constexpr std::uint64_t kGroup = 4711;
inline constexpr std::uint32_t kEpoch = 3;
inline constexpr std::uint32_t kSegmentBytes = 1024;
inline constexpr std::uint16_t kWindow = 4;

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
  std::uint64_t alive = 0;  // answers to its questions
  std::deque<Result> results;
  std::optional<std::string> refused, failed;
  std::optional<LaneLoss> lost;
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
