#include "client/cli/budget/plan_options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "client/cli/budget/budget.h"
#include "client/cli/budget/budget_report.h"
#include "client/cli/manager/access_options.h"
#include "client/cli/manager/listings.h"
#include "client/cli/options/typed_options.h"
#include "client/cli/terminal/exit_code.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_parsed;

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

}  // namespace

void describe_plan(CLI::App& app, std::function<int()>& action) {
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
  service::described(sub->add_option("--rail", wanted->rail),
                     {.value = "NAME",
                      .help = "Rail of each rank's only device (TRIBUTARY_RAIL)",
                      .standard = "none: all rails in turn"});
  const auto budget = std::make_shared<BudgetInput>();
  const CLI::Option* const flag = add_budget(*sub, budget);
  for (const char* name : {"hosts", "--ranks-per-host", "--lanes", "--levels", "--window", "--segment-bytes", "--rail"})
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

}  // namespace tributary::cli
