#pragma once
// The ways to aggregators and to other hosts, measured, and what the doctor says of them.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/service.h"
#include "client/cli/fabric/pair_record.h"
#include "client/cli/manager/access.h"
#include "client/cli/meter/figures.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::cli::doctor {

struct MeasuredWay {
  std::string to;              // name of the aggregator
  Endpoint at{};               // where it takes data
  std::string trouble{};       // why there are no figures; empty: there are
  std::string mend{};          // step that ends the trouble
  std::string interface{};     // this host's; empty: not known
  double line_rate = 0;        // bits a second of the slower of both sides' links, as they say; 0: not known
  std::uint32_t mtu_here = 0;  // as this host's interface has it; 0: not known
  meter::Way way{};
};

/// Measures the way to each address of the named aggregators, one by one; without names to those that are active, of
/// which at most kMeasuredMax. Each takes some 2 s of a lane: a group of one rank over that aggregator alone.
inline constexpr std::size_t kMeasuredMax = 16;
[[nodiscard]] std::vector<MeasuredWay> measure_aggregators(const ManagerOptions& options, const ServiceReport& service,
                                                           const std::vector<std::string>& names);
[[nodiscard]] Findings check_measured(const std::vector<MeasuredWay>& ways);
/// Names the host whose link is bad, or the way between two.
[[nodiscard]] Findings check_fabric(const fabric::FabricReport& report);

/// Says how much longer an allreduce of 64 MiB takes at `rate` than at `wanted`.
[[nodiscard]] std::string cost_of_rate(double rate, double wanted);
/// Says what so many lost segments cost.
[[nodiscard]] std::string cost_of_loss(double part);

/// Below this part of what it should be, a rate is slow.
inline constexpr double kSlowBelow = 0.8;
/// A way that loses more than this part of its segments is lossy; above the second part it is bad.
inline constexpr double kLossyAbove = 0.0005;
inline constexpr double kLossBadAbove = 0.01;

}  // namespace tributary::cli::doctor
