#include "client/cli/doctor/doctor_command.h"

#include <cstdlib>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/service.h"

namespace tributary::cli {

int examine_host(const ManagerOptions& options) {
  const char* const transports = std::getenv("TRIBUTARY_TRANSPORT");
  doctor::Findings findings = doctor::check_host({.system = transport::SystemTree(),
                                                  .ask_qos = doctor::ask_kernel_for_qos,
                                                  .transports = transports == nullptr ? "" : transports,
                                                  .gpus = doctor::ask_cuda()});
  doctor::append(findings, doctor::check_service(doctor::ask_service(options)));
  return doctor::print(findings, options.form);
}

}  // namespace tributary::cli
