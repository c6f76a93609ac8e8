#include "client/cli/manager/listing_options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "client/cli/manager/access_options.h"
#include "client/cli/manager/listings.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_text;

void describe_listing(CLI::App& app, const char* name, const char* help, int (*list)(const ManagerOptions&),
                      std::function<int()>& action) {
  auto* sub = app.add_subcommand(name, help);
  const auto options = add_manager_options(*sub);
  add_watch(*sub, *options);
  sub->callback([=, &action] { action = [=] { return list(*options); }; });
}

void describe_listing_of(CLI::App& app, const char* name, const char* help, const char* one, const char* one_help,
                         int (*list)(const ManagerOptions&, const std::string&), std::function<int()>& action) {
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
                     std::function<int()>& action) {
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

}  // namespace

void describe_listings(CLI::App& app, std::function<int()>& action) {
  describe_listing(app, "status", "Show whether the service works, and how much of it is in use", status, action);
  describe_listing_of(app, "aggregators", "Show all aggregators, or one", "name", "The aggregator's name", aggregators,
                      action);
  describe_groups(app, "groups", "Show all groups, the groups of a job, or one group with its trees", "group",
                  "The group's number, or the job's name", groups, action);
  describe_groups(app, "trees", "Show the trees of all groups, or of one", "--group", "The group's number", trees,
                  action);
}

void describe_drain(CLI::App& app, std::function<int()>& action) {
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

}  // namespace tributary::cli
