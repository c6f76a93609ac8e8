#pragma once
// Measures a way by the two parts that every way has: messages one by one, and what the kernel counts.
#include "client/cli/meter/figures.h"
#include "client/cli/meter/lane_meter.h"
#include "client/cli/meter/reach.h"

namespace tributary::cli::meter {

/// Measures round trips, by small messages; then sends messages of several frames, among which the kernel counts losses
/// that no queue has caused. Way::stalled: only the small ones come back.
[[nodiscard]] Status measure_messages(LaneMeter& meter, Way& way);
/// Returns the part of these messages that came back later by a time-out of the kernel; 0 if they are so few that the
/// hosts may have been busy. The kernel waits for 10 ms at least, or for 200 ms before Linux 6.15.
[[nodiscard]] double part_late(const std::vector<double>& seconds);
/// Sends streams for so long in all, and returns the best one: other load on a host slows some of them.
[[nodiscard]] Result<Stream> best_stream(LaneMeter& meter, bool both, transport::Duration time);
/// Adds what the kernel counted after the messages, and in the end.
void add_facts(Way& way, const PathFacts& quiet, const PathFacts& full);
[[nodiscard]] double part_of(std::uint64_t part, std::uint64_t whole) noexcept;

}  // namespace tributary::cli::meter
