#include "client/cli/doctor/doctor_options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ranges>

#include "client/cli/doctor/doctor_command.h"
#include "client/cli/manager/access_options.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_text;

}  // namespace

void describe_doctor(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("doctor", "Check this host, and say how to mend what does not work");
  sub->footer(
      "Checks network, RDMA, PCI, memory, processors, GPUs and NCCL of this host and, if a manager is given, the "
      "service. As root it sees more. Exit code 1: something is bad.");
  const auto options = add_manager_options(*sub);
  sub->add_flag_callback("--json", [options] { options->form = OutputForm::json; }, "The same as --output json");
  const auto measures = std::make_shared<DoctorMeasures>();
  const auto names = std::make_shared<std::string>();
  CLI::Option* const measure =
      add_text(*sub, "--measure", *names,
               {.value = "NAME,...",
                .help = "Also measure rate, round trip, loss and frames to the aggregators of these names, 2 s each. "
                        "Needs the job token, or a tenant's token",
                .standard = "at most 16 active ones"})
          ->expected(0, 1);
  CLI::Option* const fabric = sub->add_flag("--fabric", measures->fabric,
                                            "Also measure the hosts of a job with each other. Launched on each of them "
                                            "by srun, mpirun, torchrun or tributary run --hosts; rank 0 prints");
  add_text(*sub, "--id-file", measures->meeting.id_file,
           {.value = "FILE",
            .help = "The hosts meet through this file, on a file system that all of them share",
            .standard = "they meet at MASTER_ADDR:MASTER_PORT"})
      ->needs(fabric);
  add_number(*sub, "--meet-limit", measures->meeting.seconds, 0.1, 86400,
             {.value = "SECONDS", .help = "Time within which the hosts must meet", .standard = "60"})
      ->needs(fabric);
  sub->callback([=, &action] {
    measures->aggregators = measure->count() != 0;
    for (const auto name : std::views::split(*names, ','))
      if (!name.empty()) measures->names.emplace_back(name.begin(), name.end());
    action = [=] { return examine_host(*options, *measures); };
  });
}

}  // namespace tributary::cli
