#include "client/cli/verify/verify_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/verify/verify_command.h"
#include "service-kit/program_options.h"

namespace tributary::cli {

void describe_verify_bits(CLI::App& app, std::function<int()>& action) {
  using service::add_number;
  using service::add_parsed;
  using service::add_text;
  auto* sub = app.add_subcommand("verify-bits", "Prove the bits of exact sums on this cluster; one rank per process");
  sub->footer(
      "Start it by tributary run, mpirun, srun or torchrun. Sums of random and of adversarial inputs go by every path "
      "that the job has, and each rank compares every bit with its own exact sums. Exit code 1: a bit is wrong.");
  const auto options = std::make_shared<VerifyOptions>();
  add_number(*sub, "-e,--max-elements", options->elements_max, 1, 1U << 20,
             {.value = "N", .help = "Elements of the largest call", .standard = "65536"});
  add_number(*sub, "-n,--rounds", options->rounds, 1, 1U << 20,
             {.value = "N", .help = "Number of rounds, each with other random inputs", .standard = "1"});
  add_number(*sub, "--seed", options->seed, 0, 1ULL << 62U,
             {.value = "N", .help = "Seed of the first round's inputs", .standard = "1"});
  add_text(*sub, "--id-file", options->id_file,
           {.value = "FILE",
            .help = "Ranks meet through this file, on a file system that all of them share",
            .standard = "they meet at MASTER_ADDR:MASTER_PORT"});
  add_parsed(*sub, "--require", options->require_in_network,
             {.value = "WORD", .help = "in-network: fail where there is no tree", .allowed = "in-network"},
             [](const std::string& text) -> Result<bool> {
               if (text == "in-network") return true;
               return fail(Errc::bad_argument, "it is not in-network");
             });
  add_number(*sub, "--meet-limit", options->meet_seconds, 0.1, 86400,
             {.value = "SECONDS", .help = "Time within which the ranks must meet", .standard = "60"});
  sub->callback([options, &action] { action = [options] { return verify_bits(*options); }; });
}

}  // namespace tributary::cli
