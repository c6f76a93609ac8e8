#pragma once
// The calls of a communicator that would have been quicker on another way, for the statistics at its end.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/communicator/settings.h"
#include "client/tuning/quicker_way.h"

namespace tributary::client {

struct QuickerCall {
  Signature call;
  FlightPath path = FlightPath::undecided;  // the path that the calls took
  std::uint64_t calls = 0;                  // number of such calls in the flight record
  double took_s = 0;                        // median of their times
  tuning::Quicker way{};
  double would_take_s = 0;  // by the cost model's ratio
  [[nodiscard]] double saved_s() const noexcept { return static_cast<double>(calls) * (took_s - would_take_s); }
};

/// Returns the calls among the last ones in `record`, with the greatest saving first; at most kQuickerCallsMax. Needs
/// the figures of rank 0 in `info`: other ranks get none. Calls in shared memory and through hosts' leaders are left
/// out.
[[nodiscard]] std::vector<QuickerCall> quicker_calls(const FlightRecord::Snapshot& record,
                                                     const CommunicatorSettings& settings,
                                                     const CommunicatorInfo& info);
inline constexpr std::size_t kQuickerCallsMax = 10;
/// Returns a text such as "over aggregators with ..., all_reduce of 1000 float32 (sum) would take 1.2 ms, not 2.1 ms".
[[nodiscard]] std::string to_string(const QuickerCall& call);

}  // namespace tributary::client
