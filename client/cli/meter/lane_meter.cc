#include "client/cli/meter/lane_meter.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "tributary/protocol/assert.h"

namespace tributary::cli::meter {

using transport::Accept;
using transport::Duration;
using transport::Placement;
using transport::Reject;
using transport::TimePoint;

namespace {

constexpr Duration kTurn = std::chrono::milliseconds(5);
constexpr Duration kDrainLimit = std::chrono::seconds(3);
constexpr std::uint64_t kUnderWayFirst = 4;
// If the queue delays answers by more than this, the meter puts no more segments under way.
constexpr double kQueueSecondsMax = 0.02;
constexpr int kWarmUpShare = 4;  // the first quarter of a stream's time is not measured

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

LaneMeter::LaneMeter(transport::Transport& transport, const LaneShape& shape)
    : transport_(transport),
      shape_(shape),
      sent_(shape.segment_bytes),
      received_(std::max<std::size_t>(shape.segment_bytes, payload_bytes_max(FrameType::refuse))),
      sent_at_(shape.window) {
  TRIBUTARY_ASSERT(shape.window >= kUnderWayFirst, "a window of {} is too small to measure with", shape.window);
  for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = static_cast<std::byte>(i * 131 + 7);
}

FrameHeader LaneMeter::header_of(FrameType type) const {
  FrameHeader header;
  header.type = type;
  header.group = shape_.group;
  header.epoch = shape_.epoch;
  header.lane = shape_.lane;
  return header;
}

template <class Done>
bool LaneMeter::poll_until(Done done, TimePoint deadline) {
  while (!done()) {
    const TimePoint now = transport_.now();
    if (over_ || now >= deadline) return false;
    transport_.poll(std::min<Duration>(kTurn, deadline - now));
  }
  return true;
}

Status LaneMeter::join(std::span<const std::byte> proof, Duration limit) {
  channel_->send_copy(header_of(FrameType::join), proof);
  if (poll_until([&] { return ready_; }, transport_.now() + limit)) return {};
  if (!last_words_.empty()) return fail(Errc::denied, last_words_);
  if (over_) return std::unexpected(*over_);
  return fail(Errc::timed_out, "it takes connections, but does not answer");
}

bool LaneMeter::contribute(std::uint32_t bytes) {
  TRIBUTARY_ASSERT(bytes <= sent_.size(), "{} bytes go into a segment of {}", bytes, sent_.size());
  TRIBUTARY_ASSERT(under_way() < shape_.window, "{} segments are in flight in a window of {}", under_way(),
                   shape_.window);
  FrameHeader header = header_of(FrameType::contribution);
  header.sequence = header.operation = contributed_;
  header.set_signature({.collective = both_ ? Collective::all_reduce : Collective::reduce,
                        .dtype = DType::uint8,
                        .op = ReduceOp::sum,
                        .count = bytes});
  if (both_) header.flags = frame_flags::kWantsResult;
  if (!channel_->send(header, std::span(sent_).first(bytes), 0)) return false;
  sent_at_[contributed_ % shape_.window] = transport_.now();
  ++contributed_;
  return true;
}

Result<std::vector<double>> LaneMeter::round_trips(std::uint32_t number, std::uint32_t bytes, Duration limit) {
  const TimePoint deadline = transport_.now() + limit;
  std::vector<double> times;
  both_ = true;
  bytes_ = bytes;
  while (times.size() < number) {
    const TimePoint start = transport_.now();
    const bool sent = contribute(bytes);
    TRIBUTARY_ASSERT(sent || over_ || channel_->closed(), "an open channel refuses message {} of {}", times.size(),
                     number);
    if (!sent || !poll_until([&] { return under_way() == 0; }, deadline)) break;
    times.push_back(seconds(transport_.now() - start));
    if (std::memcmp(sent_.data(), received_.data(), bytes) != 0)
      return fail(Errc::corrupt, "other bytes came back than were sent");
  }
  const bool drained = poll_until([&] { return under_way() == 0; }, transport_.now() + kDrainLimit);
  if (over_) return std::unexpected(*over_);
  if (!drained || times.empty()) return fail(Errc::timed_out, "messages do not come back in time");
  return times;
}

Result<Stream> LaneMeter::stream(bool both, Duration time) {
  TRIBUTARY_ASSERT(under_way() == 0, "{} messages are under way when a stream begins", under_way());
  both_ = both;
  bytes_ = shape_.segment_bytes;
  under_way_max_ = kUnderWayFirst;
  const TimePoint begin = transport_.now(), counts_from = begin + time / kWarmUpShare, end = begin + time;
  std::uint64_t before = answered_;
  TimePoint since = begin, now = begin;
  double busy = thread_seconds();
  while (!over_ && now < end) {
    while (under_way() < under_way_max_ && contribute(bytes_)) {
    }
    transport_.poll(std::min<Duration>(kTurn, end - now));
    now = transport_.now();
    if (since == begin && now >= counts_from) {
      since = now;
      before = answered_;
      busy = thread_seconds();
    }
  }
  const double wall = seconds(now - since);
  Stream result{.bits_per_second = static_cast<double>(answered_ - before) * bytes_ * 8 / std::max(wall, 1e-9),
                .processor = (thread_seconds() - busy) / std::max(wall, 1e-9)};
  const bool drained = poll_until([&] { return under_way() == 0; }, now + kDrainLimit);
  if (over_) return std::unexpected(*over_);
  result.stalled = !drained && answered_ == before;
  return result;
}

void LaneMeter::result_came() {
  const TimePoint now = transport_.now();
  const double took = seconds(now - sent_at_[answered_ % shape_.window]);
  least_seconds_ = std::min(least_seconds_, took);
  const bool queue_is_short = took < std::max(kQueueSecondsMax, 3 * least_seconds_);
  if (queue_is_short && under_way_max_ < shape_.window) ++under_way_max_;
  ++answered_;
}

Placement LaneMeter::place_result(const FrameHeader& header) {
  const bool expected = header.group == shape_.group && header.epoch == shape_.epoch && header.lane == shape_.lane &&
                        header.sequence == answered_ && under_way() > 0;
  const std::uint32_t bytes = both_ ? bytes_ : 0;
  if (!expected || header.payload_bytes != bytes) return Reject{{Errc::corrupt, "a result that nobody waits for"}};
  return Accept{std::span(received_).first(bytes)};
}

Placement LaneMeter::on_header(transport::Channel&, const FrameHeader& header) {
  if (header.type == FrameType::result) return place_result(header);
  if (header.payload_bytes > received_.size())
    return Reject{{Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame that is too long"}};
  return Accept{std::span(received_).first(header.payload_bytes)};
}

void LaneMeter::on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  switch (header.type) {
    case FrameType::result:
      return result_came();
    case FrameType::ready:
      ready_ = true;
      return;
    case FrameType::refuse:
      last_words_ = text_of(payload);
      return;
    default:
      return;
  }
}

void LaneMeter::on_closed(transport::Channel&, const Error& error) {
  over_ = error;
}

}  // namespace tributary::cli::meter
