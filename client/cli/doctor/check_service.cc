// Checks the manager and its aggregators.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "client/cli/doctor/service.h"

namespace tributary::cli::doctor {
namespace {

// The difference of clocks at which tokens begin to fail: a token is valid for 120 s by default, by the manager's
// clock.
constexpr double kTokensEndSeconds = 60;
constexpr double kLogsMixSeconds = 1;
constexpr std::uint32_t kJumboPathFrom = 8000;

Finding clock_finding(const std::optional<ClockSkew>& clock) {
  Finding f{.part = "service", .what = "clock"};
  if (!clock) {
    f.level = Level::unknown;
    f.found = "the manager is of an older version, which does not tell its time";
    f.mend = "upgrade the manager; until then: chronyc tracking, on both hosts";
    return f;
  }
  const double skew = std::abs(clock->seconds);
  f.found = fmt::format("the manager's clock is {:.3f} s {}, within {:.3f} s", skew,
                        clock->seconds >= 0 ? "ahead" : "behind", clock->within);
  if (skew - clock->within < kLogsMixSeconds) return f;
  f.level = skew - clock->within < kTokensEndSeconds ? Level::warning : Level::bad;
  f.why = f.level == Level::bad
              ? "an aggregator on a host with such a clock refuses tokens, which live for 120 s: groups fall back"
              : "log lines of several hosts cannot be put in order";
  f.mend = "systemctl enable --now chrony; chronyc makestep";
  return f;
}

Finding expired(const ServiceReport::Aggregator& a) {
  return {.part = "service",
          .what = "aggregator " + a.name,
          .level = Level::warning,
          .found = "its lease has ended",
          .why = "no group uses it",
          .mend = "systemctl start tributary-aggregator, on its host, if it is still needed"};
}

Finding reached(const ServiceReport::Aggregator& a) {
  Finding f{.part = "service", .what = "aggregator " + a.name, .found = a.state + ", " + a.data + " answers"};
  if (!a.untried.empty()) f.found = a.state + ", " + a.data + "; --measure tries it over " + a.untried;
  if (a.trouble.empty()) return f;
  f.level = Level::bad;
  f.found = a.trouble;
  f.why = "groups with ranks on this host that are planned over it fall back";
  f.mend = "check its log, the route to it, and firewalls on the way: journalctl -u tributary-aggregator, on its host";
  return f;
}

std::optional<Finding> path_mtu(const ServiceReport::Aggregator& a) {
  if (a.mtu_here == 0) return std::nullopt;
  Finding f{.part = "service", .what = "path MTU to " + a.name};
  const std::uint32_t path = std::min(a.mtu_here, a.mtu_there);
  f.found = fmt::format("{} (this host offers {}, the aggregator {})", path, a.mtu_here, a.mtu_there);
  if (path >= kJumboPathFrom || a.mtu_here < kJumboPathFrom) return f;
  f.level = Level::warning;
  f.why =
      "this host is set up for jumbo frames, but they do not pass: small frames cost about six times as much "
      "processor time per byte";
  f.mend = "ip link set INTERFACE mtu 9000 on the aggregator's host; tracepath " +
           (a.at.empty() ? a.data : a.at.front().host) + " shows where frames must be small";
  return f;
}

Finding without_manager() {
  return {.part = "service",
          .what = "manager",
          .found = "none is configured: collectives run between the ranks",
          .mend = "set TRIBUTARY_MANAGER=http://HOST:7470 to use aggregators"};
}

Finding unreached(const std::string& trouble) {
  return {.part = "service",
          .what = "manager",
          .level = Level::bad,
          .found = trouble,
          .why = "new groups run between the ranks alone",
          .mend = "check that tributary-manager runs there, and that no firewall keeps this host from it"};
}

}  // namespace

Findings check_service(const ServiceReport& report) {
  if (report.url.empty()) return {without_manager()};
  if (!report.trouble.empty()) return {unreached(report.trouble)};
  Findings findings{{.part = "service", .what = "manager", .found = report.url + ", version " + report.version}};
  findings.push_back(clock_finding(report.clock));
  for (const auto& a : report.aggregators) {
    findings.push_back(a.state == "expired" ? expired(a) : reached(a));
    if (auto mtu = path_mtu(a)) findings.push_back(std::move(*mtu));
  }
  if (std::ranges::none_of(report.aggregators, [](const auto& a) { return a.state == "active"; })) {
    findings.push_back({.part = "service",
                        .what = "aggregators",
                        .level = Level::bad,
                        .found = "the manager has no active aggregator",
                        .why = "every group runs between the ranks alone",
                        .mend = "start tributary-aggregator with this manager, or end a drain: tributary drain NAME "
                                "--undo"});
  }
  return findings;
}

}  // namespace tributary::cli::doctor
