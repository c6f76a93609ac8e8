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
#include "client/cli/manager/listings.h"
#include "client/cli/network/host_network.h"
#include "client/cli/perf/byte_size.h"
#include "client/cli/perf/perf_command.h"
#include "client/cli/run/run_command.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/token/token_command.h"
#include "client/cli/top/top_command.h"
#include "client/cli/topology/topology_command.h"
#include "client/cli/tuning/explain.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"
#include "tributary/tributary.h"

namespace tributary::cli {
namespace {

/// The function that runs the chosen command, after the whole line has been read.
using Action = std::function<int()>;

template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& names, T& into, const std::string& help, const Parse& parse) {
  return app
      .add_option_function<std::string>(
          names,
          [&into, parse, names](const std::string& text) {
            const auto value = parse(text);
            if (!value) throw CLI::ValidationError(names, value.error().message);
            into = *value;
          },
          help)
      ->type_name("");
}

/// Reduces a name to its letters, because MPI, NCCL and PyTorch use different spellings: AllReduce, allreduce,
/// all-reduce, all_reduce.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

template <class T, class Find, class Name>
CLI::Option* add_named(CLI::App& app, const std::string& names, T& into, const std::string& help, std::uint8_t number,
                       Find find, Name name) {
  std::string all;
  for (std::uint8_t i = 0; i < number; ++i) all += (i == 0 ? "" : ", ") + std::string(name(static_cast<T>(i)));
  return add_parsed(app, names, into, help + ": " + all,
                    [find, name, number, all](const std::string& text) -> Result<T> {
                      if (const auto value = find(text)) return *value;
                      for (std::uint8_t i = 0; i < number; ++i) {
                        if (letters_of(name(static_cast<T>(i))) == letters_of(text)) return static_cast<T>(i);
                      }
                      return fail(Errc::bad_argument, "'" + text + "' is not one of " + all);
                    });
}

/// Adds --lanes, which accepts the values of TRIBUTARY_LANES. `into` is 0 for auto.
void add_lanes(CLI::App& app, std::uint32_t& into, const std::string& help) {
  add_parsed(app, "--lanes", into, help + ": 1 to 16, or auto: as many as save time (auto)",
             [](const std::string& text) -> Result<std::uint32_t> {
               if (text == "auto") return 0U;
               const auto lanes = service::parse_number<std::uint32_t>(text);
               if (lanes && *lanes >= 1 && *lanes <= kLanesMax) return *lanes;
               return fail(Errc::bad_argument,
                           "'" + text + "' is neither auto nor a number from 1 to " + std::to_string(kLanesMax));
             });
}

/// Reads a rate of a link, such as 1Gbit or 1Gbit/s.
Result<std::uint64_t> parse_link_rate(const std::string& text) {
  const std::string whole = text.ends_with("bit") ? text + "/s" : text;
  auto rate = service::naming(text, service::parse_rate(whole));
  if (rate && (*rate < kLinkRateMin || *rate > kLinkRateMax))
    return fail(Errc::bad_argument, "'" + text + "' is not from " + service::rate_text(kLinkRateMin) + " to " +
                                        service::rate_text(kLinkRateMax));
  return rate;
}

/// Reads a list of sizes of a comparison, such as 64K,1M.
Result<std::vector<std::uint64_t>> parse_compared_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (const auto word : std::views::split(text, ',')) {
    const auto size = parse_byte_size(std::string(word.begin(), word.end()));
    if (!size) return std::unexpected(size.error());
    if (*size == 0 || *size % sizeof(float) != 0)
      return fail(Errc::bad_argument, "'" + text + "': a size must be a multiple of 4 bytes, and not 0");
    sizes.push_back(*size);
  }
  return sizes;
}

/// Adds the options of `run --hosts`. Returns the option --hosts.
CLI::Option* add_hosts(CLI::App& sub, RunOptions& options, RunHosts& hosts) {
  CLI::Option* const number =
      sub.add_option("--hosts", options.ranks,
                     "Number of copies, each on a host of its own: network namespaces with shaped links. Needs root. "
                     "Without a command, compare trees, the ranks alone and Gloo")
          ->check(CLI::Range(2U, kHostsMax - 2));
  CLI::Option* const link = add_parsed(sub, "--link", hosts.link_bits,
                                       "Rate of each host's link, in both directions, such as 1Gbit", parse_link_rate);
  CLI::Option* const aggregator_link =
      add_parsed(sub, "--aggregator-link", hosts.aggregator_link_bits,
                 "Rate of each aggregator's link (as fast as this machine)", parse_link_rate);
  CLI::Option* const bytes = add_parsed(sub, "--bytes", hosts.bytes,
                                        "Sizes to compare, such as 64K,1M (five, by the link)", parse_compared_sizes);
  CLI::Option* const picture = sub.add_option("--picture", hosts.picture, "Draw the comparison into this file, as SVG");
  CLI::Option* const python =
      sub.add_option("--python", hosts.python, "A Python with PyTorch, for Gloo (looked for, also in build/venv)");
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
  CLI::Option* const ranks = sub->add_option("--ranks,-n", options->ranks, "Number of copies of the command")
                                 ->check(CLI::Range(1U, kLocalRanksMax));
  sub->add_option("--aggregators", options->aggregators, "Number of aggregators; 0: no service, only the ranks")
      ->check(CLI::Range(0U, kLocalAggregatorsMax));
  sub->add_option("--levels", options->levels, "Levels of the trees")->check(CLI::Range(1U, kLevelsMax));
  add_lanes(*sub, options->lanes, "Lanes of each group");
  CLI::Option* const addresses =
      sub->add_option("--addresses", options->addresses,
                      "Number of addresses at which each aggregator listens, for the lanes in turn; over RDMA each "
                      "belongs to another device")
          ->check(CLI::Range(1U, kLanesMax));
  sub->add_flag("--prefix", options->prefix, "Put the rank before every line of output");
  sub->add_flag("--keep", options->keep, "Keep the daemons' configuration, state and logs");
  sub->add_flag("--verbose,-v", options->verbose, "Print the processes that are started, and let the daemons log more");
  sub->add_option("--grace", options->grace_seconds,
                  "Seconds that the other ranks have to end by themselves after a rank has failed")
      ->check(CLI::Range(0.0, 3600.0));
  CLI::Option* const number = add_hosts(*sub, *options, *hosts)->excludes(ranks)->excludes(addresses);
  sub->callback([=, &command, &action] {
    if (number->count() != 0) {
      options->hosts = *hosts;
    } else if (ranks->count() == 0) {
      throw CLI::RequiredError("--ranks or --hosts");
    } else if (command.empty()) {
      throw CLI::ValidationError("run", "the command is missing: tributary run --ranks N -- COMMAND...");
    }
    if (command.empty() && options->aggregators == 0)
      throw CLI::ValidationError("--aggregators", "a comparison needs at least one");
    if (!command.empty() && (!hosts->bytes.empty() || !hosts->picture.empty() || !hosts->python.empty()))
      throw CLI::ValidationError("run", "--bytes, --picture and --python are for a comparison, without a command");
    options->command = command;
    action = [options] { return run(*options); };
  });
}

void describe_perf(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("perf", "Measure and check a collective; one rank per process");
  sub->footer(
      "Launched by tributary run, mpirun, srun or torchrun. Sizes are bytes, with K, M or G for powers of 1024.");
  const auto options = std::make_shared<PerfOptions>();
  BenchSettings& bench = options->bench;
  add_named(*sub, "collective", bench.call.collective, "The collective to measure", kPerfCollectiveCount,
            perf_collective_from_string, [](PerfCollective c) { return to_string(c); })
      ->required();
  add_parsed(*sub, "-b,--minbytes", options->bytes_min, "The first size (32M)", parse_byte_size);
  add_parsed(*sub, "-e,--maxbytes", options->bytes_max, "The last size (32M)", parse_byte_size);
  add_parsed(*sub, "-i,--stepbytes", options->bytes_step, "Step from size to size, without -f (1M)", parse_byte_size);
  sub->add_option("-f,--stepfactor", options->factor, "Factor from size to size")->check(CLI::Range(2U, 1U << 20));
  sub->add_option("-n,--iters", bench.iterations, "Timed operations (20)")->check(CLI::Range(1U, 1U << 30));
  sub->add_option("-w,--warmup", bench.warmup, "Operations before the timed ones (5)")->check(CLI::Range(0U, 1U << 30));
  add_named(*sub, "-d,--datatype", bench.call.dtype, "Element type (float32)", kDTypeCount, dtype_from_string,
            [](DType d) { return to_string(d); });
  add_named(*sub, "-o,--op", bench.call.op, "Reduction (sum)", kReduceOpCount, reduce_op_from_string,
            [](ReduceOp o) { return to_string(o); });
  sub->add_option("-r,--root", bench.call.root, "Root of the rooted collectives (0)")
      ->check(CLI::Range(0U, kRanksMax - 1));
  sub->add_option("-c,--check", bench.check, "1: check every result; 0: check none (1)");
  sub->add_option("--json", options->json_file,
                  "Also write the results to this file; -: to standard output, instead of the table");
  sub->add_option("--tune", options->tune_file,
                  "Measure every path and algorithm side by side instead, and write a tuning table to this file "
                  "(TRIBUTARY_TUNING). Its entries for other collectives and numbers of ranks stay. Sizes: 4 to "
                  "16M, by a factor of 8");
  sub->add_option("--id-file", options->id_file,
                  "Ranks meet through this file, on a file system that all of them share, rather "
                  "than at MASTER_ADDR:MASTER_PORT");
  add_parsed(*sub, "--require", options->require_in_network,
             "in-network: fail, with exit code 69, where there is no tree or no byte goes by it (TRIBUTARY_REQUIRE)",
             [](const std::string& text) -> Result<bool> {
               if (text == "in-network") return true;
               return fail(Errc::bad_argument, "'" + text + "' is not in-network");
             });
  sub->add_option("--meet-limit", options->meet_seconds, "Seconds that ranks have to meet (60)")
      ->check(CLI::Range(0.1, 86400.0));
  sub->callback([options, sub, &action] {
    if (!options->tune_file.empty()) {
      if (options->require_in_network) throw CLI::ValidationError("--require", "--tune measures every path");
      if (sub->count("--minbytes") == 0) options->bytes_min = 4;
      if (sub->count("--maxbytes") == 0) options->bytes_max = std::max<std::uint64_t>(options->bytes_min, 16U << 20);
      if (sub->count("--stepfactor") == 0 && sub->count("--stepbytes") == 0) options->factor = 8;
      if (options->bench.call.collective == PerfCollective::sendrecv)
        throw CLI::ValidationError("--tune", "sendrecv has only one way");
    }
    if (sub->count("--minbytes") != 0 && sub->count("--maxbytes") == 0 && options->bytes_max < options->bytes_min)
      options->bytes_max = options->bytes_min;
    if (options->bytes_min > options->bytes_max) throw CLI::ValidationError("-b", "it is larger than -e");
    if (options->factor != 0 && options->bytes_min == 0)
      throw CLI::ValidationError("-b", "a factor cannot increase a size of 0");
    if (options->factor == 0 && options->bytes_step == 0)
      throw CLI::ValidationError("-i", "the step is 0, so no size follows");
    action = [options] { return perf(*options); };
  });
}

void describe_explain(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("explain", "Say which path an operation takes, and why; contacts no other process");
  sub->footer("Example: tributary explain all_reduce --bytes 64K --ranks 8 --link-rate 10Gbit/s");
  const auto options = std::make_shared<ExplainOptions>();
  add_named(
      *sub, "collective", options->collective, "The collective", kCollectiveCount,
      [](const std::string& name) -> std::optional<Collective> {
        for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
          std::string here(to_string(static_cast<Collective>(i)));
          if (here == name) return static_cast<Collective>(i);
          std::erase(here, '_');
          if (here == name) return static_cast<Collective>(i);  // the spelling of MPI
        }
        return std::nullopt;
      },
      [](Collective c) { return to_string(c); })
      ->required();
  add_parsed(*sub, "--bytes,-b", options->bytes, "Size of the larger of its two buffers, such as 8, 4K or 64M",
             parse_byte_size)
      ->required();
  sub->add_option("--ranks,-n", options->ranks, "Number of ranks (8)")->check(CLI::Range(1U, kRanksMax));
  add_named(*sub, "-d,--dtype", options->dtype, "Element type (float32)", kDTypeCount, dtype_from_string,
            [](DType d) { return to_string(d); });
  sub->add_option("--tuning", options->tuning, "auto, model, off or a tuning table (TRIBUTARY_TUNING, else auto)");
  add_parsed(*sub, "--link-rate", options->link_bits,
             "Rate of each rank's link, such as 10Gbit/s; 0bit/s: all ranks are on one host",
             [](const std::string& text) -> Result<std::optional<std::uint64_t>> {
               const auto rate = service::naming(text, service::parse_rate(text));
               if (!rate) return std::unexpected(rate.error());
               return std::optional(*rate);
             });
  sub->add_option("--cores", options->cores, "Cores of each host (this machine's number)")
      ->check(CLI::Range(1U, 65536U));
  sub->add_option("--ranks-per-host", options->ranks_per_host,
                  "The most ranks on one host (1); equal to --ranks: all ranks are on one host")
      ->check(CLI::Range(1U, 65536U));
  add_parsed(*sub, "--output,-o", options->json, "table or json", [](const std::string& text) -> Result<bool> {
    if (text == "table" || text == "json") return text == "json";
    return fail(Errc::bad_argument, "'" + text + "' is neither table nor json");
  });
  sub->callback([options, &action] { action = [options] { return explain(*options); }; });
}

void add_access_options(CLI::App& sub, ManagerOptions& options) {
  sub.add_option("--manager", options.url, "The manager's URL, http://HOST:7470 (TRIBUTARY_MANAGER)");
  sub.add_option("--token-file", options.token_file, "A file with one of the manager's tokens (TRIBUTARY_TOKEN_FILE)");
}

/// Adds the options that are common to all commands that ask the manager.
std::shared_ptr<ManagerOptions> add_manager_options(CLI::App& sub) {
  const auto options = std::make_shared<ManagerOptions>();
  add_access_options(sub, *options);
  sub.add_option("--time-limit", options->seconds_max, "Seconds that the manager has to answer (10)")
      ->check(CLI::Range(0.05, 3600.0));
  add_parsed(sub, "--output,-o", options->form, kOutputForms, parse_output_form);
  return options;
}

/// Adds --watch to a command that shows a state.
void add_watch(CLI::App& sub, ManagerOptions& options) {
  sub.add_option("--watch,-W", options.watch_seconds,
                 "Seconds after which to show it again (2), until you press Ctrl-C")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 86400.0));
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
  sub->add_option(one, *which, one_help);
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
  sub->add_option(one, *which, one_help);
  sub->add_option("--job", filter->job, "Only the groups of this job");
  if (std::string_view(name) == "groups") sub->add_option("--user", filter->user, "Only the groups of this user");
  sub->callback([=, &action] { action = [=] { return list(*options, *which, *filter); }; });
}

void describe_top(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("top", "Show groups and aggregators live: rates by path");
  const auto options = std::make_shared<ManagerOptions>(ManagerOptions{.seconds_max = 2});
  add_access_options(*sub, *options);
  const auto interval = std::make_shared<double>(2);
  sub->add_option("--interval,-d", *interval, "Seconds between two looks (2)")->check(CLI::Range(0.1, 3600.0));
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
      sub->add_option("--measure", *names,
                      "Also measure rate, round trip, loss and frames to the aggregators of these names (to at most 16 "
                      "active ones), 2 s each. Needs the job token, or a tenant's")
          ->expected(0, 1);
  CLI::Option* const fabric = sub->add_flag("--fabric", measures->fabric,
                                            "Also measure the hosts of a job with each other. Launched on each of them "
                                            "by srun, mpirun, torchrun or tributary run --hosts; rank 0 prints");
  sub->add_option("--id-file", measures->meeting.id_file,
                  "The hosts meet through this file, on a file system that all of them share, rather than at "
                  "MASTER_ADDR:MASTER_PORT")
      ->needs(fabric);
  sub->add_option("--meet-limit", measures->meeting.seconds, "Seconds that the hosts have to meet (60)")
      ->check(CLI::Range(0.1, 86400.0))
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
  sub->add_option("name", *name, "The aggregator")->required();
  CLI::Option* const undo = sub->add_flag("--undo", how->undo, "Take the aggregator into use again");
  sub->add_option("--wait", how->wait_seconds, "Wait until it has no lanes any more, at most this many seconds (3600)")
      ->expected(0, 1)
      ->default_str("3600")
      ->check(CLI::Range(0.1, 1e6))
      ->excludes(undo);
  sub->callback([=, &action] { action = [=] { return drain(*options, *name, *how); }; });
}

Result<std::uint64_t> parse_budget_rate(const std::string& text) {
  auto rate = service::naming(text, service::parse_rate(text));
  if (rate && *rate < kBudgetRateMin)
    return fail(Errc::bad_argument, "'" + text + "' is too slow: at least " + service::rate_text(kBudgetRateMin));
  return rate;
}

Result<std::chrono::microseconds> parse_budget_time(const std::string& text) {
  auto time = service::naming(text, service::parse_duration(text));
  if (time && time->count() < 1) return fail(Errc::bad_argument, "'" + text + "' is no time: at least 1us");
  return time;
}

/// Adds the options of `plan --budget`. Returns the flag --budget.
CLI::Option* add_budget(CLI::App& sub, const std::shared_ptr<BudgetInput>& input) {
  const std::string help = "Compute how long a step's gradients take, and how much aggregators help; asks no manager";
  CLI::Option* const flag = sub.add_flag("--budget", help);
  CLI::Option* const parameters =
      add_parsed(sub, "--parameters", input->parameters, "Number of the model's parameters, such as 70e9 or 70G",
                 [](const std::string& text) { return parse_parameters(text); });
  CLI::Option* const dtype = add_named(sub, "--dtype", input->dtype, "Type of the gradients (bfloat16)", kDTypeCount,
                                       dtype_from_string, [](DType d) { return to_string(d); });
  CLI::Option* const ranks = sub.add_option("--ranks", input->ranks, "Number of ranks, each with a link of its own")
                                 ->check(CLI::Range(2U, kRanksMax));
  CLI::Option* const link = add_parsed(sub, "--link-rate", input->rank_rate,
                                       "Rate of each rank's link, such as 400Gbit/s", parse_budget_rate);
  CLI::Option* const aggregators =
      sub.add_option("--aggregators", input->aggregators, "Number of aggregators (as many as suffice)")
          ->check(CLI::Range(1U, kRanksMax));
  CLI::Option* const aggregator_rate = add_parsed(sub, "--aggregator-rate", input->aggregator_rate,
                                                  "Rate of each aggregator's link (the ranks')", parse_budget_rate);
  CLI::Option* const step = add_parsed(sub, "--step", input->step, "Time wanted for a step, such as 10s",
                                       [](const std::string& text) -> Result<std::optional<std::chrono::microseconds>> {
                                         const auto time = parse_budget_time(text);
                                         if (!time) return std::unexpected(time.error());
                                         return std::optional(*time);
                                       });
  CLI::Option* const computing =
      add_parsed(sub, "--computing", input->computing, "Time of the computing in a step", parse_budget_time);
  CLI::Option* const overlap =
      sub.add_option("--overlap", input->overlap, "Part of the computing, 0 to 1, behind which communication runs (0)")
          ->check(CLI::Range(0.0, 1.0));
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
      "Needs one of the manager's tokens (--token-file); with --budget nothing.\n"
      "Example: tributary plan --budget --parameters 70G --ranks 1024 --link-rate 400Gbit/s --step 10s");
  const auto options = add_manager_options(*sub);
  const auto wanted = std::make_shared<PlanOptions>();
  sub->add_option("hosts", wanted->hosts, "Host names by rank, or ranges such as node-[1-4]");
  sub->add_option("--ranks-per-host", wanted->ranks_per_host, "Number of consecutive ranks on each host (1)")
      ->check(CLI::Range(1U, 4096U));
  add_lanes(*sub, wanted->lanes, "Lanes");
  sub->add_option("--levels", wanted->levels, "Exact number of levels")->check(CLI::Range(1U, kTreeLevelsMax));
  sub->add_option("--window", wanted->window, "Segments in flight")->check(CLI::Range(1U, kWindowMax));
  sub->add_option("--segment-bytes", wanted->segment_bytes, "Size of a segment")
      ->check(CLI::Range(kSegmentBytesMin, kSegmentBytesMax));
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
  app.set_version_flag("--version", "tributary " + std::to_string(TRIBUTARY_VERSION_MAJOR) + "." +
                                        std::to_string(TRIBUTARY_VERSION_MINOR) + "." +
                                        std::to_string(TRIBUTARY_VERSION_PATCH));
  app.footer("Exit codes: 0 success, 1 failure, 64 wrong usage, 69 service unreachable, 78 wrong configuration.");
  describe_run(app, command, action);
  describe_perf(app, action);
  describe_explain(app, action);
  describe_doctor(app, action);
  describe_listing(app, "status", "Show whether the service works, and how much of it is in use", status, action);
  describe_listing_of(app, "aggregators", "Show all aggregators, or one", "name", "The aggregator's name", aggregators,
                      action);
  describe_groups(app, "groups", "Show all groups, those of a job, or one with its trees", "group",
                  "The group's number, or the job's name", groups, action);
  describe_groups(app, "trees", "Show the trees of all groups, or of one", "--group", "The group's number", trees,
                  action);
  describe_top(app, action);
  describe_topology(app, action);
  describe_drain(app, action);
  describe_plan(app, action);
  describe_token(app, action);
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

/// True if the first word is neither a subcommand nor an option. CLI11's own message would not name this word.
bool is_unknown(const CLI::App& app, const std::vector<std::string>& arguments) {
  return !arguments.empty() && app.get_option_no_throw(arguments.front()) == nullptr &&
         app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(arguments.front()); }).empty();
}

}  // namespace

int run_command_line(std::vector<std::string> arguments) {
  arguments = written_out(std::move(arguments));
  const std::vector<std::string> command = take_command(arguments);
  CLI::App app("Tributary: in-network reduction as a service", "tributary");
  Action action;
  describe(app, command, action);
  if (is_unknown(app, arguments)) {
    std::fprintf(stderr, "tributary: '%s' is not a subcommand; tributary --help lists them all\n",
                 arguments.front().c_str());
    return kExitUsage;
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects this order
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitGood : kExitUsage;
  }
  return action();
}

}  // namespace tributary::cli
