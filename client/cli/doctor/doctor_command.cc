#include "client/cli/doctor/doctor_command.h"

#include <cstdlib>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/measurement.h"
#include "client/cli/doctor/service.h"
#include "client/cli/fabric/fabric_run.h"
#include "client/cli/terminal/exit_code.h"

namespace tributary::cli {

namespace {

doctor::Findings examine(const ManagerOptions& options, const DoctorMeasures& measures) {
  const char* const transports = std::getenv("TRIBUTARY_TRANSPORT");
  doctor::Findings findings = doctor::check_host({.system = transport::SystemTree(),
                                                  .ask_qos = doctor::ask_kernel_for_qos,
                                                  .transports = transports == nullptr ? "" : transports,
                                                  .gpus = doctor::ask_cuda()});
  const doctor::ServiceReport service = doctor::ask_service(options);
  doctor::append(findings, doctor::check_service(service));
  if (measures.aggregators)
    doctor::append(findings, doctor::check_measured(doctor::measure_aggregators(options, service, measures.names)));
  return findings;
}

/// Only rank 0 prints. It also checks its own host.
int examine_fabric(const ManagerOptions& options, const DoctorMeasures& measures) {
  const auto launch = detect_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (!launch) return complain_of(launch.error());
  const auto report = fabric::run_fabric(*launch, measures.meeting);
  if (!report) return complain_of(report.error());
  if (!*report) return kExitGood;
  doctor::Findings findings = examine(options, measures);
  doctor::append(findings, doctor::check_fabric(**report));
  return doctor::print(findings, options.form);
}

}  // namespace

int examine_host(const ManagerOptions& options, const DoctorMeasures& measures) {
  if (measures.fabric) return examine_fabric(options, measures);
  return doctor::print(examine(options, measures), options.form);
}

}  // namespace tributary::cli
