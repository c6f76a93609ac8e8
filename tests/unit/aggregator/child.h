#pragma once
// A rank, or a process that claims to be one, over any transport, for the tests of the worker and of the daemon.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Returns the claims of a rank's token for lane 0 of the group kGroup, whose only aggregator this is. The rank has its
/// place as a child for its number.
TokenClaims claims_of_rank(std::string_view aggregator, std::uint32_t epoch, std::uint16_t child,
                           std::uint16_t children, std::int64_t expires_at);
/// Returns the time, in seconds since 1970, at which a token ends that is signed now by the system's clock.
std::int64_t end_of_new_token();

/// A rank, or a process that claims to be one. It acts as the test says, and records the answers.
class Child final : public transport::ChannelHandler {
 public:
  struct Result {
    FrameHeader header;
    Bytes payload;
  };

  /// Connects and sends `join` as the payload of a join frame; if `join` is empty, it sends nothing.
  Child(transport::Transport& transport, const Endpoint& to, const Bytes& join, std::uint32_t epoch);

  void send(FrameHeader header, Bytes payload = {});
  /// Contributes segment `sequence` of an operation of one segment, and asks for the result.
  void contribute(std::uint64_t sequence, const Signature& signature, Bytes payload,
                  std::uint16_t flags = frame_flags::kWantsResult);
  void leave();
  void close() { channel_->close(); }
  [[nodiscard]] transport::Channel& channel() { return *channel_; }
  [[nodiscard]] const Result* result_of(std::uint64_t sequence) const;

  bool ready = false;
  std::uint64_t alive = 0;                 // counts the answers to its questions
  std::uint64_t words_wanted = 0;          // counts the aggregator's questions
  std::vector<std::uint32_t> seen_wanted;  // ranks about which the aggregator has asked this one
  std::deque<Result> results;
  std::optional<std::string> refused, failed;
  std::optional<LaneLoss> lost;
  std::optional<MismatchReport> fault;
  std::optional<Error> closed;
  bool reads_in_place = false;            // takes results where they lie, if the transport offers it
  std::vector<const std::byte*> read_at;  // places of such results

  bool takes_in_place(transport::Channel&, const FrameHeader& header) override {
    return reads_in_place && header.type == FrameType::result;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override;
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel&, const Error& error) override { closed = error; }

 private:
  const std::uint32_t epoch_;
  std::deque<Bytes> borrowed_;  // all payloads sent, kept to the end
  Bytes incoming_;
  std::unique_ptr<transport::Channel> channel_;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Returns elements that differ in every rank and sequence. Sums of them are not exact, so a wrong order shows.
std::vector<float> floats(std::uint32_t rank, std::size_t count, std::uint64_t sequence = 0);
/// Returns the sum, with the ranks added in the given order.
std::vector<float> sum_of(const std::vector<std::vector<float>>& inputs);

inline constexpr Signature kSum{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 16};
inline constexpr Signature kMax{Collective::all_reduce, DType::float32, ReduceOp::max, 0, 16};

}  // namespace tributary::aggregator::test
