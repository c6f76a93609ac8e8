#include "client/cli/tenants/tenants_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/cli/manager/access_options.h"
#include "client/cli/tenants/tenant_actions.h"
#include "client/cli/terminal/moments.h"
#include "service-kit/program_options.h"
#include "tributary/protocol/credential.h"

namespace tributary::cli {
namespace {

using Action = std::function<int()>;
using nlohmann::json;
using service::add_number;
using service::add_parsed;
using service::add_text;

constexpr std::uint64_t kLimitMax = 1'000'000'000;
constexpr std::uint32_t kReservedMax = 4096;

/// The values of `tenants set`.
struct Entry {
  std::uint64_t groups = 0, lanes = 0, memory_bytes = 0, bits_per_second = 0;
  std::uint32_t weight = 1;
  std::string priority_max, security;
};

/// Adds an option that takes one of these words.
CLI::Option* add_word(CLI::App& sub, const char* name, std::string& into, const std::vector<std::string>& words,
                      const char* help, const char* standard) {
  std::string allowed;
  for (std::size_t i = 0; i < words.size(); ++i)
    allowed += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return add_parsed(sub, name, into, {.value = "WORD", .help = help, .allowed = allowed, .standard = standard},
                    [words](const std::string& text) -> Result<std::string> {
                      if (std::ranges::find(words, text) != words.end()) return text;
                      return fail(Errc::bad_argument, "it is none of these");
                    });
}

std::vector<CLI::Option*> add_entry(CLI::App& sub, Entry& entry) {
  constexpr const char* kNoLimit = "no limit";
  return {
      add_number(sub, "--groups", entry.groups, 0, kLimitMax,
                 {.value = "N", .help = "Most groups with trees", .standard = kNoLimit}),
      add_number(sub, "--lanes", entry.lanes, 0, kLimitMax, {.value = "N", .help = "Most lanes", .standard = kNoLimit}),
      add_parsed(sub, "--memory", entry.memory_bytes,
                 {.value = "BYTES",
                  .help = "Most memory of aggregators",
                  .allowed = "a size with a unit, such as 8GiB",
                  .standard = kNoLimit},
                 service::parse_bytes),
      add_parsed(sub, "--rate", entry.bits_per_second,
                 {.value = "RATE",
                  .help = "Most planned rate of all links of its trees together",
                  .allowed = "a rate such as 100Gbit/s",
                  .standard = kNoLimit},
                 service::parse_rate),
      add_word(sub, "--priority-max", entry.priority_max, {"low", "normal", "high"}, "Highest class of its groups",
               "normal"),
      add_number(sub, "--weight", entry.weight, 1, kShareWeightMax,
                 {.value = "N", .help = "Weight of its share of each aggregator's work", .standard = "1"}),
      add_word(sub, "--security", entry.security, {"off", "authenticate", "encrypt"},
               "Least security of its groups with trees", "off")};
}

/// Makes the body of the request, from the options that the line has.
json body_of(const CLI::App& sub, const Entry& entry) {
  json body = json::object();
  const auto add = [&](const char* option, const char* member, json value) {
    if (sub.get_option(option)->count() != 0) body[member] = std::move(value);
  };
  add("--groups", "groups", entry.groups);
  add("--lanes", "lanes", entry.lanes);
  add("--memory", "memory_bytes", entry.memory_bytes);
  add("--rate", "bytes_per_second", entry.bits_per_second / 8);
  add("--priority-max", "priority_max", entry.priority_max);
  add("--weight", "weight", entry.weight);
  add("--security", "security", entry.security);
  return body;
}

void describe_set(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("set", "Replace a tenant's entry");
  sub->footer(
      "Needs the token of an administrator. A limit that the line does not have is lifted. The name default stands for "
      "all tenants without an entry, job.token for the holders of the job token.\n"
      "Example: tributary tenants set physics --groups 8 --memory 8GiB --priority-max high");
  const auto options = add_manager_options(*sub);
  const auto name = std::make_shared<std::string>();
  const auto entry = std::make_shared<Entry>();
  add_text(*sub, "name", *name, {.value = "NAME", .help = "The tenant's name"})->required();
  add_entry(*sub, *entry);
  sub->callback([=, &action] {
    const json body = body_of(*sub, *entry);
    if (body.empty())
      throw service::WrongUse({.key = "tenants set",
                               .why = "the line has no limit and no other term",
                               .allowed = "at least one of --groups, --lanes, --memory, --rate, --priority-max, "
                                          "--weight and --security"});
    action = [=] { return set_tenant(*options, *name, body); };
  });
}

/// Adds a subcommand that needs one name.
void describe_one(CLI::App& app, const char* word, const char* help, const char* name_help,
                  int (*act)(const ManagerOptions&, const std::string&), Action& action) {
  auto* sub = app.add_subcommand(word, help);
  const auto options = add_manager_options(*sub);
  const auto name = std::make_shared<std::string>();
  add_text(*sub, "name", *name, {.value = "NAME", .help = name_help})->required();
  sub->callback([=, &action] { action = [=] { return act(*options, *name); }; });
}

/// Makes the command list if the line has no subcommand.
void list_by_default(CLI::App* sub, int (*list)(const ManagerOptions&), Action& action) {
  const auto options = add_manager_options(*sub);
  add_watch(*sub, *options);
  sub->require_subcommand(0, 1);
  sub->callback([=, &action] {
    if (sub->get_subcommands().empty()) action = [=] { return list(*options); };
  });
}

}  // namespace

void describe_tenants(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("tenants", "Show what tenants use and may use, or change it");
  sub->footer("A column such as 3/8 shows what the tenant's trees take, and the most that they may take.");
  list_by_default(sub, list_tenants, action);
  describe_set(*sub, action);
  describe_one(*sub, "remove", "Remove a tenant's entry; the entry default then counts", "The tenant's name",
               remove_tenant, action);
}

void describe_reservations(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("reservations", "Show reservations of aggregators, or end one");
  list_by_default(sub, list_reservations, action);
  describe_one(*sub, "end", "End a reservation now, or before it begins", "The reservation's name", end_reservation,
               action);
}

void describe_reserve(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("reserve", "Keep aggregators for a tenant or a job between two times");
  sub->footer(
      "Needs the token of an administrator or operator.\n"
      "Example: tributary reserve run-17 --tenant physics --count 4 --begin 2026-12-01T08:00 --for 24h --exclusive");
  const auto options = add_manager_options(*sub);
  const auto wanted = std::make_shared<ReservationWanted>();
  add_text(*sub, "name", wanted->name, {.value = "NAME", .help = "A name for the reservation"})->required();
  add_text(*sub, "--tenant", wanted->tenant,
           {.value = "NAME", .help = "The holder; job.token: the holders of the job token"})
      ->required();
  add_text(*sub, "--job", wanted->job, {.value = "NAME", .help = "Only groups of this job", .standard = "all"});
  CLI::Option* const names = service::described(sub->add_option("--aggregators", wanted->aggregators)->delimiter(','),
                                                {.value = "NAME,...", .help = "The aggregators to keep"});
  CLI::Option* const count =
      add_number(*sub, "--count", wanted->count, 1, kReservedMax,
                 {.value = "N", .help = "Number of aggregators; the manager chooses those that are least in use"})
          ->excludes(names);
  add_parsed(*sub, "--begin", wanted->begin,
             {.value = "TIME", .help = "Begin", .allowed = kMomentForms, .standard = "now"}, parse_moment);
  CLI::Option* const end =
      add_parsed(*sub, "--end", wanted->end, {.value = "TIME", .help = "End", .allowed = kMomentForms}, parse_moment);
  CLI::Option* const life =
      add_parsed(*sub, "--for", wanted->life_s,
                 {.value = "TIME", .help = "Time from the beginning to the end", .allowed = kLongTimeForms},
                 parse_long_time)
          ->excludes(end);
  sub->add_flag("--exclusive", wanted->exclusive,
                "At the beginning, groups of other holders leave the aggregators; otherwise they stay until they end");
  sub->callback([=, &action] {
    if (names->count() + count->count() == 0) throw CLI::RequiredError("--aggregators or --count");
    if (end->count() + life->count() == 0) throw CLI::RequiredError("--end or --for");
    action = [=] { return reserve(*options, *wanted); };
  });
}

}  // namespace tributary::cli
