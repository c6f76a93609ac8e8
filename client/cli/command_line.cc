#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <ranges>

#include "client/cli/budget/budget.h"
#include "client/cli/budget/budget_report.h"
#include "client/cli/cluster/cluster_layout.h"
#include "client/cli/doctor/doctor_command.h"
#include "client/cli/manager/access_options.h"
#include "client/cli/manager/listings.h"
#include "client/cli/network/host_network.h"
#include "client/cli/perf/byte_size.h"
#include "client/cli/perf/exact_pattern.h"
#include "client/cli/perf/perf_command.h"
#include "client/cli/run/run_command.h"
#include "client/cli/tenants/tenants_command.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/token/token_command.h"
#include "client/cli/top/top_command.h"
#include "client/cli/topology/topology_command.h"
#include "client/cli/tuning/explain.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"
#include "tributary/tributary.h"

namespace tributary::cli {
namespace {

/// The function that runs the chosen command, after the whole line has been read.
using Action = std::function<int()>;
using service::add_number;
using service::add_parsed;
using service::add_text;
using service::OptionText;

/// Reduces a name to its letters, because MPI, NCCL and PyTorch use different spellings: AllReduce, allreduce,
/// all-reduce, all_reduce.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

/// Adds an option whose value is one of `number` names.
template <class T, class Find, class Name>
CLI::Option* add_named(CLI::App& app, const std::string& names, T& into, OptionText text, std::uint8_t number,
                       Find find, Name name) {
  for (std::uint8_t i = 0; i < number; ++i)
    text.allowed += (i == 0 ? "" : i + 1 == number ? " or " : ", ") + std::string(name(static_cast<T>(i)));
  return add_parsed(app, names, into, text, [find, name, number](const std::string& written) -> Result<T> {
    if (const auto value = find(written)) return *value;
    for (std::uint8_t i = 0; i < number; ++i) {
      if (letters_of(name(static_cast<T>(i))) == letters_of(written)) return static_cast<T>(i);
    }
    return fail(Errc::bad_argument, "it is none of these");
  });
}

CLI::Option* add_dtype(CLI::App& app, const std::string& names, DType& into, const std::string& help,
                       const std::string& standard) {
  return add_named(app, names, into, {.value = "TYPE", .help = help, .standard = standard}, kDTypeCount,
                   dtype_from_string, [](DType d) { return to_string(d); });
}

/// Adds --lanes, which accepts the values of TRIBUTARY_LANES. `into` is 0 for auto.
void add_lanes(CLI::App& app, std::uint32_t& into, const std::string& help) {
  add_parsed(app, "--lanes", into,
             {.value = "N",
              .help = help + "; auto: as many as save time",
              .allowed = "auto, or 1 to " + std::to_string(kLanesMax),
              .standard = "auto"},
             [](const std::string& text) -> Result<std::uint32_t> {
               if (text == "auto") return 0U;
               return service::parse_within(text, 1U, std::uint32_t{kLanesMax});
             });
}

/// Adds an option that takes a size such as 64M.
CLI::Option* add_bytes(CLI::App& app, const std::string& names, std::uint64_t& into, const std::string& help,
                       const std::string& standard = {}) {
  return add_parsed(app, names, into, {.value = "BYTES", .help = help, .allowed = kByteSizeForms, .standard = standard},
                    parse_byte_size);
}

/// Reads a rate from `low` to `high` bit/s.
Result<std::uint64_t> parse_rate_within(const std::string& text, std::uint64_t low, std::uint64_t high) {
  auto rate = service::parse_rate(text);
  if (rate && *rate < low) return fail(Errc::bad_argument, "it is below " + service::rate_text(low));
  if (rate && *rate > high) return fail(Errc::bad_argument, "it is above " + service::rate_text(high));
  return rate;
}

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

void describe_run(CLI::App& app, const std::vector<std::string>& command, Action& action) {
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

void describe_perf(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("perf", "Measure and check a collective; one rank per process");
  sub->footer(
      "Start it by tributary run, mpirun, srun or torchrun. Sizes are bytes, with K, M or G for powers of 1024.");
  const auto options = std::make_shared<PerfOptions>();
  BenchSettings& bench = options->bench;
  add_named(*sub, "collective", bench.call.collective, {.value = "NAME", .help = "The collective to measure"},
            kPerfCollectiveCount, perf_collective_from_string, [](PerfCollective c) { return to_string(c); })
      ->required();
  add_bytes(*sub, "-b,--minbytes", options->bytes_min, "The first size", "32M");
  add_bytes(*sub, "-e,--maxbytes", options->bytes_max, "The last size", "32M");
  add_bytes(*sub, "-i,--stepbytes", options->bytes_step, "Step from size to size, without -f", "1M");
  add_number(*sub, "-f,--stepfactor", options->factor, 2, 1U << 20,
             {.value = "N", .help = "Factor from size to size", .standard = "none: steps of -i"});
  add_number(*sub, "-n,--iters", bench.iterations, 1, 1U << 30,
             {.value = "N", .help = "Timed operations", .standard = "20"});
  add_number(*sub, "-w,--warmup", bench.warmup, 0, 1U << 30,
             {.value = "N", .help = "Operations before the timed ones", .standard = "5"});
  add_dtype(*sub, "-d,--datatype", bench.call.dtype, "Element type", "float32");
  add_named(*sub, "-o,--op", bench.call.op, {.value = "OPERATOR", .help = "Reduction", .standard = "sum"},
            kReduceOpCount, reduce_op_from_string, [](ReduceOp o) { return to_string(o); });
  add_number(*sub, "-r,--root", bench.call.root, 0, kRanksMax - 1,
             {.value = "RANK", .help = "Root of the rooted collectives", .standard = "0"});
  add_parsed(
      *sub, "-c,--check", bench.check,
      {.value = "WORD",
       .help = "1: check every result; 0: check none; exact: compare every bit with the exact sum, rounded once, "
               "of values whose rounded sums depend on the order (TRIBUTARY_NUMERICS=exact)",
       .allowed = "0, 1 or exact",
       .standard = "1"},
      [&exact = bench.call.exact](const std::string& text) -> Result<bool> {
        exact = text == "exact";
        if (text == "0" || text == "1" || exact) return text != "0";
        return fail(Errc::bad_argument, "it is none of these");
      });
  add_parsed(
      *sub, "--memory", options->gpu_memory,
      {.value = "WORD",
       .help = "Memory of the buffers; cuda: of the GPU whose number is LOCAL_RANK modulo the number of GPUs. The "
               "copies that fill the buffers and check the results are not timed",
       .allowed = "host or cuda",
       .standard = "host"},
      [](const std::string& text) -> Result<bool> {
        if (text == "host" || text == "cuda") return text == "cuda";
        return fail(Errc::bad_argument, "it is neither of these");
      });
  add_text(
      *sub, "--json", options->json_file,
      {.value = "FILE", .help = "Also write the results to this file; -: to standard output, instead of the table"});
  add_text(*sub, "--tune", options->tune_file,
           {.value = "FILE",
            .help = "Measure every path and algorithm side by side instead, and write a tuning table to this file "
                    "(TRIBUTARY_TUNING). Its entries for other collectives and numbers of ranks stay. Sizes: 4 to "
                    "16M, by a factor of 8"});
  add_text(*sub, "--id-file", options->id_file,
           {.value = "FILE",
            .help = "Ranks meet through this file, on a file system that all of them share",
            .standard = "they meet at MASTER_ADDR:MASTER_PORT"});
  add_parsed(*sub, "--require", options->require_in_network,
             {.value = "WORD",
              .help = "in-network: fail, with exit code 69, where there is no tree or no byte goes by it",
              .allowed = "in-network",
              .standard = "TRIBUTARY_REQUIRE"},
             [](const std::string& text) -> Result<bool> {
               if (text == "in-network") return true;
               return fail(Errc::bad_argument, "it is not in-network");
             });
  add_number(*sub, "--meet-limit", options->meet_seconds, 0.1, 86400,
             {.value = "SECONDS", .help = "Time within which the ranks must meet", .standard = "60"});
  sub->callback([options, sub, &action] {
    const CallShape& call = options->bench.call;
    if (call.exact && (!reduces(call.collective) || !has_exact_pattern(call.dtype, call.op)))
      throw service::WrongUse({.key = "--check",
                               .value = "exact",
                               .why = "it is for sums and averages of floats",
                               .allowed = "all_reduce, reduce or reduce_scatter of a float type, with sum or avg"});
    if (!options->tune_file.empty()) {
      if (options->require_in_network)
        throw service::WrongUse({.key = "--require",
                                 .why = "it contradicts --tune, which measures every path",
                                 .allowed = "one of the two"});
      if (sub->count("--minbytes") == 0) options->bytes_min = 4;
      if (sub->count("--maxbytes") == 0) options->bytes_max = std::max<std::uint64_t>(options->bytes_min, 16U << 20);
      if (sub->count("--stepfactor") == 0 && sub->count("--stepbytes") == 0) options->factor = 8;
      if (options->bench.call.collective == PerfCollective::sendrecv)
        throw service::WrongUse({.key = "--tune",
                                 .value = options->tune_file,
                                 .why = "it contradicts sendrecv, which has only one way",
                                 .allowed = "another collective"});
    }
    if (sub->count("--minbytes") != 0 && sub->count("--maxbytes") == 0 && options->bytes_max < options->bytes_min)
      options->bytes_max = options->bytes_min;
    if (options->bytes_min > options->bytes_max) {
      throw service::WrongUse({.key = "--minbytes",
                               .value = std::to_string(options->bytes_min),
                               .why = "it contradicts --maxbytes, which is " + std::to_string(options->bytes_max),
                               .allowed = "at most --maxbytes"});
    }
    if (options->factor != 0 && options->bytes_min == 0)
      throw service::WrongUse({.key = "--minbytes",
                               .value = "0",
                               .why = "it contradicts --stepfactor, which cannot increase it",
                               .allowed = "at least 1 with --stepfactor"});
    if (options->factor == 0 && options->bytes_step == 0)
      throw service::WrongUse(
          {.key = "--stepbytes", .value = "0", .why = "no size would follow", .allowed = "at least 1"});
    action = [options] { return perf(*options); };
  });
}

void describe_explain(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("explain", "Say which path an operation takes, and why; contacts no other process");
  sub->footer("Example: tributary explain all_reduce --bytes 64K --ranks 8 --link-rate 10Gbit/s");
  const auto options = std::make_shared<ExplainOptions>();
  add_named(
      *sub, "collective", options->collective, {.value = "NAME", .help = "The collective"}, kCollectiveCount,
      [](const std::string& name) -> std::optional<Collective> {
        for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
          if (to_string(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
        }
        return std::nullopt;
      },
      [](Collective c) { return to_string(c); })
      ->required();
  add_bytes(*sub, "--bytes,-b", options->bytes, "Size of the larger of its two buffers")->required();
  add_number(*sub, "--ranks,-n", options->ranks, 1, kRanksMax,
             {.value = "N", .help = "Number of ranks", .standard = "8"});
  add_dtype(*sub, "-d,--dtype", options->dtype, "Element type", "float32");
  add_text(*sub, "--tuning", options->tuning,
           {.value = "WORD",
            .help = "How to choose the path",
            .allowed = "auto, model, off or the path of a tuning table",
            .standard = "TRIBUTARY_TUNING, else auto"});
  add_parsed(*sub, "--link-rate", options->link_bits,
             {.value = "RATE",
              .help = "Rate of each rank's link; 0bit/s: all ranks are on one host",
              .allowed = "a rate such as 10Gbit/s",
              .standard = "this host's"},
             service::parse_rate);
  add_number(*sub, "--cores", options->cores, 1, 65536,
             {.value = "N", .help = "Cores of each host", .standard = "this machine's number"});
  add_number(*sub, "--ranks-per-host", options->ranks_per_host, 1, 65536,
             {.value = "N",
              .help = "The most ranks on one host; equal to --ranks: all ranks are on one host",
              .standard = "1"});
  add_parsed(*sub, "--output,-o", options->json,
             {.value = "FORM", .help = "Form of the output", .allowed = "table or json", .standard = "table"},
             [](const std::string& text) -> Result<bool> {
               if (text == "table" || text == "json") return text == "json";
               return fail(Errc::bad_argument, "it is none of these");
             });
  sub->callback([options, &action] { action = [options] { return explain(*options); }; });
}

void describe_listing(CLI::App& app, const char* name, const char* help, int (*list)(const ManagerOptions&),
                      Action& action) {
  auto* sub = app.add_subcommand(name, help);
  const auto options = add_manager_options(*sub);
  add_watch(*sub, *options);
  sub->callback([=, &action] { action = [=] { return list(*options); }; });
}

void describe_listing_of(CLI::App& app, const char* name, const char* help, const char* one, const char* one_help,
                         int (*list)(const ManagerOptions&, const std::string&), Action& action) {
  auto* sub = app.add_subcommand(name, help);
  const auto options = add_manager_options(*sub);
  add_watch(*sub, *options);
  const auto which = std::make_shared<std::string>();
  add_text(*sub, one, *which,
           {.value = std::string(one).starts_with('-') ? "N" : "NAME", .help = one_help, .standard = "all"});
  sub->callback([=, &action] { action = [=] { return list(*options, *which); }; });
}

void describe_groups(CLI::App& app, const char* name, const char* help, const char* one, const char* one_help,
                     const std::function<int(const ManagerOptions&, const std::string&, GroupFilter)>& list,
                     Action& action) {
  auto* sub = app.add_subcommand(name, help);
  const auto options = add_manager_options(*sub);
  add_watch(*sub, *options);
  const auto which = std::make_shared<std::string>();
  const auto filter = std::make_shared<GroupFilter>();
  add_text(*sub, one, *which,
           {.value = std::string(one).starts_with('-') ? "N" : "NAME", .help = one_help, .standard = "all"});
  add_text(*sub, "--job", filter->job, {.value = "NAME", .help = "Only the groups of this job", .standard = "all"});
  if (std::string_view(name) == "groups")
    add_text(*sub, "--user", filter->user,
             {.value = "NAME", .help = "Only the groups of this user", .standard = "all"});
  sub->callback([=, &action] { action = [=] { return list(*options, *which, *filter); }; });
}

void describe_top(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("top", "Show groups and aggregators live: rates by path");
  const auto options = std::make_shared<ManagerOptions>(ManagerOptions{.seconds_max = 2});
  add_access(*sub, *options);
  const auto interval = std::make_shared<double>(2);
  add_number(*sub, "--interval,-d", *interval, 0.1, 3600,
             {.value = "SECONDS", .help = "Time between two updates", .standard = "2"});
  sub->callback([=, &action] { action = [=] { return top(*options, *interval); }; });
}

void describe_doctor(CLI::App& app, Action& action) {
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

void describe_drain(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("drain", "Take an aggregator out of use without disturbing running groups");
  sub->footer("Needs the aggregator token: --token-file with aggregator.token from the manager's state directory.");
  const auto options = add_manager_options(*sub);
  const auto name = std::make_shared<std::string>();
  const auto how = std::make_shared<DrainOptions>();
  add_text(*sub, "name", *name, {.value = "NAME", .help = "The aggregator's name"})->required();
  CLI::Option* const undo = sub->add_flag("--undo", how->undo, "Take the aggregator into use again");
  add_number(*sub, "--wait", how->wait_seconds, 0.1, 1e6,
             {.value = "SECONDS",
              .help = "Wait until it has no lanes any more, at most this long",
              .standard = "3600 without a number"})
      ->expected(0, 1)
      ->default_str("3600")
      ->excludes(undo);
  sub->callback([=, &action] { action = [=] { return drain(*options, *name, *how); }; });
}

CLI::Option* add_budget_rate(CLI::App& sub, const char* name, std::uint64_t& into, const std::string& help,
                             const std::string& standard = {}) {
  return add_parsed(sub, name, into,
                    {.value = "RATE",
                     .help = help,
                     .allowed = "a rate such as 400Gbit/s, from " + service::rate_text(kBudgetRateMin),
                     .standard = standard},
                    [](const std::string& text) { return parse_rate_within(text, kBudgetRateMin, UINT64_MAX); });
}

template <class Time>
CLI::Option* add_budget_time(CLI::App& sub, const char* name, Time& into, const std::string& help) {
  return add_parsed(sub, name, into, {.value = "TIME", .help = help, .allowed = "a time such as 10s, from 1us"},
                    [](const std::string& text) -> Result<std::chrono::microseconds> {
                      const auto time = service::parse_duration(text);
                      if (time && time->count() < 1) return fail(Errc::bad_argument, "it is below 1us");
                      return time;
                    });
}

/// Adds the options of `plan --budget`. Returns the flag --budget.
CLI::Option* add_budget(CLI::App& sub, const std::shared_ptr<BudgetInput>& input) {
  const std::string help = "Compute how long a step's gradients take, and how much aggregators help; asks no manager";
  CLI::Option* const flag = sub.add_flag("--budget", help);
  CLI::Option* const parameters = add_parsed(
      sub, "--parameters", input->parameters,
      {.value = "N", .help = "Number of the model's parameters", .allowed = kParametersForms}, parse_parameters);
  CLI::Option* const dtype = add_dtype(sub, "--dtype", input->dtype, "Type of the gradients", "bfloat16");
  CLI::Option* const ranks = add_number(sub, "--ranks", input->ranks, 2, kRanksMax,
                                        {.value = "N", .help = "Number of ranks, each with a link of its own"});
  CLI::Option* const link = add_budget_rate(sub, "--link-rate", input->rank_rate, "Rate of each rank's link");
  CLI::Option* const aggregators =
      add_number(sub, "--aggregators", input->aggregators, 1, kRanksMax,
                 {.value = "N", .help = "Number of aggregators", .standard = "as many as suffice"});
  CLI::Option* const aggregator_rate =
      add_budget_rate(sub, "--aggregator-rate", input->aggregator_rate, "Rate of each aggregator's link", "the ranks'");
  CLI::Option* const step = add_budget_time(sub, "--step", input->step, "Time wanted for a step");
  CLI::Option* const computing =
      add_budget_time(sub, "--computing", input->computing, "Time of the computing in a step");
  CLI::Option* const overlap =
      add_number(sub, "--overlap", input->overlap, 0, 1,
                 {.value = "PART", .help = "Part of the computing during which communication runs", .standard = "0"});
  for (CLI::Option* const option :
       {parameters, dtype, ranks, link, aggregators, aggregator_rate, step, computing, overlap})
    option->needs(flag)->group("With --budget");
  for (CLI::Option* const option : {parameters, ranks, link}) flag->needs(option);
  computing->needs(step);
  overlap->needs(computing);
  return flag->group("With --budget");
}

int show_budget(BudgetInput input, bool as_json) {
  if (input.aggregator_rate == 0) input.aggregator_rate = input.rank_rate;
  const Budget budget = budget_of(input);
  std::fputs((as_json ? budget_json(input, budget) : budget_text(input, budget)).c_str(), stdout);
  return kExitGood;
}

void describe_plan(CLI::App& app, Action& action) {
  auto* sub =
      app.add_subcommand("plan", "Show the trees that ranks on these hosts would get now, without reserving them");
  sub->footer(
      "Needs one of the manager's tokens (--token-file); with --budget it needs none.\n"
      "Example: tributary plan --budget --parameters 70G --ranks 1024 --link-rate 400Gbit/s --step 10s");
  const auto options = add_manager_options(*sub);
  const auto wanted = std::make_shared<PlanOptions>();
  service::described(sub->add_option("hosts", wanted->hosts),
                     {.value = "NAME", .help = "Host names by rank, or ranges such as node-[1-4]"});
  add_number(*sub, "--ranks-per-host", wanted->ranks_per_host, 1, 4096,
             {.value = "N", .help = "Number of consecutive ranks on each host", .standard = "1"});
  add_lanes(*sub, wanted->lanes, "Lanes");
  add_number(*sub, "--levels", wanted->levels, 1, kTreeLevelsMax,
             {.value = "N", .help = "Exact number of levels", .standard = "the planner's choice"});
  add_number(*sub, "--window", wanted->window, 1, kWindowMax,
             {.value = "N", .help = "Segments in flight", .standard = "the manager's"});
  add_number(*sub, "--segment-bytes", wanted->segment_bytes, kSegmentBytesMin, kSegmentBytesMax,
             {.value = "BYTES", .help = "Bytes of a segment, without a unit", .standard = "the manager's"});
  const auto budget = std::make_shared<BudgetInput>();
  const CLI::Option* const flag = add_budget(*sub, budget);
  for (const char* name : {"hosts", "--ranks-per-host", "--lanes", "--levels", "--window", "--segment-bytes"})
    sub->get_option(name)->excludes(sub->get_option("--budget"));
  sub->callback([=, &action] {
    if (flag->count() != 0) {
      action = [=] { return show_budget(*budget, is_document(options->form)); };
      return;
    }
    if (wanted->hosts.empty()) throw CLI::RequiredError("hosts");
    action = [=] { return plan(*options, *wanted); };
  });
}

/// Removes and returns the arguments after the first "--": they are the command of `run`, not options of this program.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

void describe(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       "tributary " + std::to_string(TRIBUTARY_VERSION_MAJOR) + "." +
                           std::to_string(TRIBUTARY_VERSION_MINOR) + "." + std::to_string(TRIBUTARY_VERSION_PATCH),
                       "Print the version, and exit");
  app.footer(
      "Exit codes: 0 success, 1 failure, 64 wrong usage, 69 service unreachable, 75 another rank has failed, 78 wrong "
      "configuration.");
  describe_run(app, command, action);
  describe_perf(app, action);
  describe_explain(app, action);
  describe_doctor(app, action);
  describe_listing(app, "status", "Show whether the service works, and how much of it is in use", status, action);
  describe_listing_of(app, "aggregators", "Show all aggregators, or one", "name", "The aggregator's name", aggregators,
                      action);
  describe_groups(app, "groups", "Show all groups, the groups of a job, or one group with its trees", "group",
                  "The group's number, or the job's name", groups, action);
  describe_groups(app, "trees", "Show the trees of all groups, or of one", "--group", "The group's number", trees,
                  action);
  describe_top(app, action);
  describe_topology(app, action);
  describe_drain(app, action);
  describe_plan(app, action);
  describe_token(app, action);
  describe_tenants(app, action);
  describe_reserve(app, action);
  describe_reservations(app, action);
  app.add_subcommand("help", "Show what a command does: tributary help COMMAND");  // see written_out()
  app.add_subcommand("version", "Show the version");
}

/// Replaces `help`, `help COMMAND...` and `version` by --help and --version. Both words have a --help of their own.
std::vector<std::string> written_out(std::vector<std::string> arguments) {
  if (arguments.size() == 1 && arguments.front() == "version") return {"--version"};
  if (arguments.empty() || arguments.front() != "help") return arguments;
  if (arguments.size() > 1 && arguments[1].starts_with('-')) return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// Refuses a first word that is neither a command nor an option: CLI11 would only say that a command is missing.
void check_first_word(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || app.get_option_no_throw(arguments.front()) != nullptr) return;
  const auto same = [&](const CLI::App* sub) { return sub->check_name(arguments.front()); };
  if (app.get_subcommands(same).empty()) throw service::WrongUse(service::unknown_argument(app, arguments.front()));
}

}  // namespace

int run_command_line(std::vector<std::string> arguments) {
  arguments = written_out(std::move(arguments));
  const std::vector<std::string> command = take_command(arguments);
  CLI::App app("Tributary: in-network reduction as a service", "tributary");
  service::use_help_style(app);
  Action action;
  describe(app, command, action);
  try {
    check_first_word(app, arguments);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 expects this order
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return service::answer(error, app, "tributary", arguments);
  }
  return action();
}

}  // namespace tributary::cli
