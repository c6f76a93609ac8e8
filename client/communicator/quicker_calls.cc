#include "client/communicator/quicker_calls.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "tributary/protocol/collective.h"

namespace tributary::client {
namespace {

struct Kind {
  Signature call;
  FlightPath path = FlightPath::undecided;
  [[nodiscard]] auto key() const {
    return std::tuple(call.collective, call.dtype, call.op, call.root, call.count, path);
  }
  friend bool operator<(const Kind& a, const Kind& b) { return a.key() < b.key(); }
};
using Seconds = std::vector<double>;

std::map<Kind, Seconds> times_of(const FlightRecord::Snapshot& record) {
  std::map<Kind, Seconds> times;
  for (const FlightEntry& it : record.entries) {
    const bool known = it.outcome == FlightOutcome::success && it.started && it.ended;
    const bool between_hosts = it.path == FlightPath::in_network || it.path == FlightPath::between_ranks;
    if (known && between_hosts)
      times[{it.signature, it.path}].push_back(std::chrono::duration<double>(*it.ended - *it.started).count());
  }
  return times;
}

double median_of(Seconds& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::string milliseconds(double seconds) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g ms", seconds * 1e3);
  return text.data();
}

}  // namespace

std::vector<QuickerCall> quicker_calls(const FlightRecord::Snapshot& record, const CommunicatorSettings& settings,
                                       const CommunicatorInfo& info) {
  std::vector<QuickerCall> found;
  if (!info.figures) return found;
  for (auto& [kind, times] : times_of(record)) {
    const tuning::PresentWay present{
        .call = {kind.call.collective, settings.nranks,
                 amount_in_all(kind.call.collective, kind.call.count * size_of(kind.call.dtype), settings.nranks)},
        .in_network = kind.path == FlightPath::in_network,
        .trees_in_use = info.in_network,
        .other_path_untried = settings.tuning != TuningMode::automatic};
    const auto quicker = tuning::quicker_way(*info.figures, present);
    if (!quicker) continue;
    const double took = median_of(times);
    found.push_back({kind.call, kind.path, times.size(), took, quicker->way, took * quicker->ratio});
  }
  std::ranges::sort(found, std::greater(), &QuickerCall::saved_s);
  if (found.size() > kQuickerCallsMax) found.resize(kQuickerCallsMax);
  return found;
}

std::string to_string(const QuickerCall& call) {
  return std::string(tuning::text_of(call.way)) + ", " + tributary::to_string(call.call) + " would take " +
         milliseconds(call.would_take_s) + ", not " + milliseconds(call.took_s);
}

}  // namespace tributary::client
