#pragma once
// The two measurements of every way: messages that are sent one by one, and the kernel's counts.
#include <chrono>
#include <cstdint>

#include "client/cli/meter/figures.h"
#include "client/cli/meter/lane_meter.h"
#include "client/cli/meter/reach.h"

namespace tributary::cli::meter {

// Sizes and times of every measurement.
inline constexpr std::uint32_t kWindow = 64;                     // segments that a lane may have under way
inline constexpr std::uint32_t kSegmentBytes = 64U << 10;        // bytes of a segment
inline constexpr std::chrono::milliseconds kConnectLimit{2000};  // for a connection, and for the answer to a join
inline constexpr std::chrono::milliseconds kStreamTime{600};     // time of all streams of one direction together

/// Measures round trips with small messages. Then sends messages of several frames, one by one: so a full queue causes
/// none of the losses that the kernel counts meanwhile. Way::stalled: only the small messages come back.
[[nodiscard]] Status measure_messages(LaneMeter& meter, Way& way);
/// Returns the part of these messages that came back later by a time-out of the kernel; 0 if they are so few that the
/// hosts may have been busy. The kernel waits for 10 ms at least, or for 200 ms before Linux 6.15.
[[nodiscard]] double part_late(const std::vector<double>& seconds);
/// Sends streams that take `time` together, and returns the fastest: other load on a host slows some of them.
[[nodiscard]] Result<Stream> best_stream(LaneMeter& meter, bool both, transport::Duration time);
/// Adds the kernel's figures to `way`: `quiet` from the end of the messages, `full` from the end of the streams.
void add_facts(Way& way, const PathFacts& quiet, const PathFacts& full);
[[nodiscard]] double part_of(std::uint64_t part, std::uint64_t whole) noexcept;

}  // namespace tributary::cli::meter
