// Checks the manager and its aggregators.
#include <algorithm>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {

Findings check_service(const ServiceReport& report) {
  if (report.url.empty()) {
    return {{.part = "service",
             .what = "manager",
             .level = Level::note,
             .says = "none is configured: collectives run between the ranks",
             .advice = "set TRIBUTARY_MANAGER=http://HOST:7470 to use aggregators"}};
  }
  if (!report.trouble.empty()) {
    return {{.part = "service",
             .what = "manager",
             .level = Level::mend,
             .says = report.trouble,
             .advice = "check that tributary-manager runs there, and that no firewall keeps this host from it"}};
  }
  Findings findings{
      {.part = "service", .what = "manager", .says = report.url + ", version " + report.version, .advice = {}}};
  for (const auto& a : report.aggregators) {
    if (a.state == "expired") {
      findings.push_back({.part = "service",
                          .what = "aggregator " + a.name,
                          .level = Level::note,
                          .says = "its lease has ended",
                          .advice = "start it again if it is still needed"});
      continue;
    }
    findings.push_back({.part = "service",
                        .what = "aggregator " + a.name,
                        .level = a.trouble.empty() ? Level::good : Level::mend,
                        .says = a.trouble.empty() ? a.state + ", " + a.data + " answers" : a.trouble,
                        .advice = a.trouble.empty() ? "" : "check its log, the route to it, and firewalls on the way"});
  }
  const bool usable = std::ranges::any_of(report.aggregators, [](const auto& a) { return a.state == "active"; });
  if (!usable) {
    findings.push_back(
        {.part = "service",
         .what = "aggregators",
         .level = Level::mend,
         .says = "the manager has no active aggregator: every group runs on the fallback",
         .advice = "start tributary-aggregator with this manager, or end a drain: tributary drain NAME --undo"});
  }
  return findings;
}

}  // namespace tributary::cli::doctor
