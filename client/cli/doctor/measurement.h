#pragma once
// Measurements of the ways to aggregators and between hosts, and the doctor's findings about them.
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
  Endpoint at{};               // the aggregator's address for data
  std::string trouble{};       // reason why `way` has no figures; empty: it has figures
  std::string mend{};          // step that ends the trouble
  std::string interface{};     // name of this host's interface; empty: not known
  double line_rate = 0;        // bits a second of the slower link, as both hosts report them; 0: not known
  std::uint32_t mtu_here = 0;  // MTU of this host's interface; 0: not known
  meter::Way way{};
};

/// Measures the way to each address of the named aggregators, one by one; without names, of at most kMeasuredMax
/// active aggregators. Each way takes about 2 s, in a lane of a group of one rank over this aggregator alone.
inline constexpr std::size_t kMeasuredMax = 16;
[[nodiscard]] std::vector<MeasuredWay> measure_aggregators(const ManagerOptions& options, const ServiceReport& service,
                                                           const std::vector<std::string>& names);
[[nodiscard]] Findings check_measured(const std::vector<MeasuredWay>& ways);
/// Names the hosts whose links are bad, and bad ways between two hosts.
[[nodiscard]] Findings check_fabric(const fabric::FabricReport& report);

/// Says how much longer an allreduce of 64 MiB takes at `rate` than at `wanted`.
[[nodiscard]] std::string cost_of_rate(double rate, double wanted);
/// Says what it costs if this part of the segments is lost.
[[nodiscard]] std::string cost_of_loss(double part);

/// A rate is slow below this part of the wanted rate.
inline constexpr double kSlowBelow = 0.8;
/// A way that loses more than kLossyAbove of its segments is lossy; above kLossBadAbove it is bad.
inline constexpr double kLossyAbove = 0.0005;
inline constexpr double kLossBadAbove = 0.01;

}  // namespace tributary::cli::doctor
