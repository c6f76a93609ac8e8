#include "client/cli/run/run_options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ranges>

#include "client/cli/cluster/cluster_layout.h"
#include "client/cli/network/host_network.h"
#include "client/cli/options/byte_size.h"
#include "client/cli/options/typed_options.h"
#include "client/cli/run/run_command.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_parsed;
using service::add_text;

/// Adds an option that takes the rate of a shaped link, such as 1Gbit or 1Gbit/s.
CLI::Option* add_shaped_rate(CLI::App& app, const char* name, std::uint64_t& into, const std::string& help,
                             const std::string& standard = {}) {
  return add_parsed(app, name, into,
                    {.value = "RATE",
                     .help = help,
                     .allowed = service::rate_text(kLinkRateMin) + " to " + service::rate_text(kLinkRateMax),
                     .standard = standard},
                    [](const std::string& text) {
                      return parse_rate_within(text.ends_with("bit") ? text + "/s" : text, kLinkRateMin, kLinkRateMax);
                    });
}

/// Reads a list of sizes of a comparison, such as 64K,1M.
Result<std::vector<std::uint64_t>> parse_compared_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (const auto word : std::views::split(text, ',')) {
    const auto size = parse_byte_size(std::string(word.begin(), word.end()));
    if (!size) return std::unexpected(size.error());
    if (*size == 0 || *size % sizeof(float) != 0)
      return fail(Errc::bad_argument, "a size is 0, or no multiple of 4 bytes");
    sizes.push_back(*size);
  }
  return sizes;
}

/// Adds the options of `run --hosts`. Returns the option --hosts.
CLI::Option* add_hosts(CLI::App& sub, RunOptions& options, RunHosts& hosts) {
  CLI::Option* const number =
      add_number(sub, "--hosts", options.ranks, 2, kHostsMax - 2,
                 {.value = "N",
                  .help = "Number of copies, each on a host of its own: network namespaces with shaped links. Needs "
                          "root. Without a command, compare trees, the ranks alone and Gloo"});
  CLI::Option* const link =
      add_shaped_rate(sub, "--link", hosts.link_bits, "Rate of each host's link, in both directions");
  CLI::Option* const aggregator_link = add_shaped_rate(sub, "--aggregator-link", hosts.aggregator_link_bits,
                                                       "Rate of each aggregator's link", "as fast as this machine");
  CLI::Option* const bytes = add_parsed(sub, "--bytes", hosts.bytes,
                                        {.value = "BYTES,...",
                                         .help = "Sizes to compare",
                                         .allowed = "sizes such as 64K,1M",
                                         .standard = "five sizes, by the link's rate"},
                                        parse_compared_sizes);
  CLI::Option* const picture = add_text(sub, "--picture", hosts.picture,
                                        {.value = "FILE", .help = "Draw the comparison into this file, as SVG"});
  CLI::Option* const python = add_text(sub, "--python", hosts.python,
                                       {.value = "PROGRAM",
                                        .help = "A Python with PyTorch, for Gloo",
                                        .standard = "a Python that the command finds, also in build/venv"});
  for (CLI::Option* const option : {link, aggregator_link, bytes, picture, python})
    option->needs(number)->group("With --hosts");
  return number->needs(link)->group("With --hosts");
}

}  // namespace

void describe_run(CLI::App& app, const std::vector<std::string>& command, std::function<int()>& action) {
  auto* sub = app.add_subcommand("run", "Run a command with a private cluster on this machine");
  sub->footer(
      "Example: tributary run --ranks 4 --levels 2 -- tributary perf all_reduce -b 8 -e 64M -f 4\n"
      "Example: tributary run --hosts 8 --link 1Gbit --picture gain.svg");
  const auto options = std::make_shared<RunOptions>();
  const auto hosts = std::make_shared<RunHosts>();
  CLI::Option* const ranks = add_number(*sub, "--ranks,-n", options->ranks, 1, kLocalRanksMax,
                                        {.value = "N", .help = "Number of copies of the command"});
  add_number(*sub, "--aggregators", options->aggregators, 0, kLocalAggregatorsMax,
             {.value = "N",
              .help = "Number of aggregators; 0: no service, only the ranks",
              .standard = "as many as the levels need"});
  add_number(*sub, "--levels", options->levels, 1, kLevelsMax,
             {.value = "N", .help = "Levels of the trees", .standard = "by the numbers of ranks and aggregators"});
  add_lanes(*sub, options->lanes, "Lanes of each group");
  CLI::Option* const addresses =
      add_number(*sub, "--addresses", options->addresses, 1, kLanesMax,
                 {.value = "N",
                  .help = "Number of addresses at which each aggregator listens, for the lanes in turn; over RDMA each "
                          "belongs to another device",
                  .standard = "1"});
  sub->add_flag("--prefix", options->prefix, "Put the rank before every line of output");
  sub->add_flag("--keep", options->keep, "Keep the daemons' configuration, state and logs");
  sub->add_flag("--verbose,-v", options->verbose, "Print the processes that are started, and let the daemons log more");
  add_number(*sub, "--grace", options->grace_seconds, 0, 3600,
             {.value = "SECONDS",
              .help = "Time that the other ranks have to end by themselves after a rank has failed",
              .standard = "5"});
  CLI::Option* const number = add_hosts(*sub, *options, *hosts)->excludes(ranks)->excludes(addresses);
  sub->callback([=, &command, &action] {
    if (number->count() != 0) {
      options->hosts = *hosts;
    } else if (ranks->count() == 0) {
      throw CLI::RequiredError("--ranks or --hosts");
    } else if (command.empty()) {
      throw service::WrongUse(
          {.key = "COMMAND", .why = "it is missing", .allowed = "tributary run --ranks N -- COMMAND..."});
    }
    if (command.empty() && options->aggregators == 0)
      throw service::WrongUse({.key = "--aggregators",
                               .value = "0",
                               .why = "it contradicts a comparison, which needs an aggregator",
                               .allowed = "at least 1"});
    if (!command.empty() && (!hosts->bytes.empty() || !hosts->picture.empty() || !hosts->python.empty()))
      throw service::WrongUse({.key = "--bytes, --picture, --python",
                               .why = "they contradict a command",
                               .allowed = "a comparison, without a command"});
    options->command = command;
    action = [options] { return run(*options); };
  });
}

}  // namespace tributary::cli
