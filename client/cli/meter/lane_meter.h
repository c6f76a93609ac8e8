#pragma once
// Measures the way to a process that answers each contribution with a result: an aggregator that has one child in a
// lane, or an Echo. It sends the frames and the proof of a rank, so an aggregator needs no listener for measurements.
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::cli::meter {

struct LaneShape {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint8_t lane = 0;
  std::uint32_t window = 0;  // number of segments
  std::uint32_t segment_bytes = 0;
};

/// Figures of a stream of segments.
struct Stream {
  double bits_per_second = 0;
  double processor = 0;  // part of a core that this thread needed
  bool stalled = false;  // no segment, or not every segment, was answered
};

class LaneMeter final : public transport::ChannelHandler {
 public:
  LaneMeter(transport::Transport& transport, const LaneShape& shape);
  /// Takes the connection. This object must be the connection's handler.
  void attach(std::unique_ptr<transport::Channel> channel) { channel_ = std::move(channel); }

  /// Shows `proof` and waits until the other side is ready. Errc::denied, unreachable: the reason why it is not ready.
  [[nodiscard]] Status join(std::span<const std::byte> proof, transport::Duration limit);
  /// Sends `number` messages of `bytes`, one by one, and returns the seconds until each came back. Errc::corrupt:
  /// the answer differs from the message. If the limit passes, returns the times so far.
  [[nodiscard]] Result<std::vector<double>> round_trips(std::uint32_t number, std::uint32_t bytes,
                                                        transport::Duration limit);
  /// Sends segments for this time, as fast as answers come. `both`: the answers carry the segments back.
  [[nodiscard]] Result<Stream> stream(bool both, transport::Duration time);
  /// Returns the frame by which a rank leaves a lane.
  [[nodiscard]] FrameHeader leave_frame() const { return header_of(FrameType::leave); }
  [[nodiscard]] transport::Channel& channel() noexcept { return *channel_; }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  [[nodiscard]] FrameHeader header_of(FrameType type) const;
  /// Sends one contribution. False: the channel takes no frame until it has sent other frames.
  bool contribute(std::uint32_t bytes);
  [[nodiscard]] transport::Placement place_result(const FrameHeader& header);
  void result_came();
  /// Polls until `done`, at most until the deadline. Returns whether it is done.
  template <class Done>
  bool poll_until(Done done, transport::TimePoint deadline);
  [[nodiscard]] std::uint64_t under_way() const noexcept { return contributed_ - answered_; }

  transport::Transport& transport_;
  const LaneShape shape_;
  std::vector<std::byte> sent_, received_;     // one segment in each
  std::vector<transport::TimePoint> sent_at_;  // time of each contribution, by sequence mod window
  std::uint64_t contributed_ = 0, answered_ = 0;
  std::uint64_t under_way_max_ = 0;  // grows while answers come soon, so that a slow link has no long queue
  double least_seconds_ = 1e9;       // the shortest time until an answer
  std::uint32_t bytes_ = 0;          // bytes of each contribution at this time
  bool both_ = true;
  bool ready_ = false;
  std::string last_words_;  // the reason of a refusal
  std::optional<Error> over_;
  std::unique_ptr<transport::Channel> channel_;  // declared last: it reads and writes the buffers
};

}  // namespace tributary::cli::meter
