#include "client/cli/meter/way.h"

#include <algorithm>

namespace tributary::cli::meter {
namespace {

constexpr std::uint32_t kMessages = 200;
constexpr std::uint32_t kMessageBytes = 64;
constexpr std::uint32_t kFramesMessages = 1500;
constexpr std::uint32_t kFramesBytes = 4096;  // three frames of 1500 bytes
constexpr std::chrono::milliseconds kMessagesLimit{1500};
// A message is late by the kernel's time-out if its only or last frame is lost.
constexpr double kShortTimeOut = 0.009, kLongTimeOut = 0.18;  // seconds
constexpr std::size_t kShortMin = 5, kLongMin = 2;            // messages
constexpr int kStreams = 2;

}  // namespace

double part_of(std::uint64_t part, std::uint64_t whole) noexcept {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

double part_late(const std::vector<double>& seconds) {
  if (seconds.empty()) return 0;
  const double median = round_trips_of(seconds).median;
  const double late_from = std::max(median + kShortTimeOut, 3 * median);
  const auto later_than = [&](double limit) {
    return static_cast<std::size_t>(std::ranges::count_if(seconds, [&](double s) { return s > limit; }));
  };
  const std::size_t by_short = later_than(late_from), by_long = later_than(kLongTimeOut + median);
  const bool counts = by_short >= kShortMin || by_long >= kLongMin;
  return counts ? part_of(by_short, seconds.size()) : 0;
}

Status measure_messages(LaneMeter& meter, Way& way) {
  const auto times = meter.round_trips(kMessages, kMessageBytes, kMessagesLimit);
  if (!times) return std::unexpected(times.error());
  way.round_trips = round_trips_of(*times);
  const auto more = meter.round_trips(kFramesMessages, kFramesBytes, kMessagesLimit);
  way.stalled = !more && more.error().code == Errc::timed_out;
  if (way.stalled) return {};
  if (!more) return std::unexpected(more.error());
  way.lost_from = part_late(*more);
  return {};
}

Result<Stream> best_stream(LaneMeter& meter, bool both, transport::Duration time) {
  Stream best;
  for (int i = 0; i < kStreams; ++i) {
    const auto stream = meter.stream(both, time / kStreams);
    if (!stream || stream->stalled) return stream;
    if (stream->bits_per_second > best.bits_per_second) best = *stream;
  }
  return best;
}

void add_facts(Way& way, const PathFacts& quiet, const PathFacts& full) {
  // The other side may report later that it had a segment already: then `full` counts fewer segments sent again.
  const std::uint64_t again = std::min(quiet.segments_again, full.segments_again);
  way.lost_to = part_of(again, quiet.segments_out);
  // Late messages that this side has not lost were lost on their way back.
  way.lost_from = std::max(part_of(quiet.segments_in_late, quiet.segments_in), way.lost_from - way.lost_to);
  way.lost_full = part_of(full.segments_again - again, full.segments_out - quiet.segments_out);
  way.mtu = std::min(full.mtu_here, full.mtu_there);
}

}  // namespace tributary::cli::meter
