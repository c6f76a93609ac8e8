#include "client/cli/token/token_command.h"

#include <CLI/CLI.hpp>

#include "client/cli/manager/access_options.h"
#include "client/cli/terminal/moments.h"
#include "client/cli/token/token_actions.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

using Action = std::function<int()>;
using service::add_text;

std::shared_ptr<ManagerOptions> add_manager_access(CLI::App& sub) {
  auto options = std::make_shared<ManagerOptions>();
  add_access(sub, *options, "File with your own token");
  add_time_limit(sub, *options);
  return options;
}

CLI::Option* add_life(CLI::App& sub, const char* name, std::int64_t& into, const char* help,
                      const std::string& standard = {}) {
  return service::add_parsed(sub, name, into,
                             {.value = "TIME", .help = help, .allowed = kLongTimeForms, .standard = standard},
                             parse_long_time);
}

void describe_make(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("make", "Make a token, with a signing key or by the manager");
  sub->footer(
      "A holder of the key file can make any token. The manager makes tokens for administrators and operators.\n"
      "Example: tributary token make --tenant physics --job train --life 2h --key-file /etc/tributary/identity.keys");
  const auto options = add_manager_access(*sub);
  const auto wanted = std::make_shared<TokenWanted>();
  add_text(*sub, "--tenant", wanted->tenant,
           {.value = "NAME", .help = "Owner of the groups that the token asks for; for role tenant"});
  add_text(*sub, "--job", wanted->job,
           {.value = "NAME", .help = "Only groups of this job; for role tenant", .standard = "all jobs"});
  add_text(*sub, "--role", wanted->role,
           {.value = "ROLE",
            .help = "Rights of the holder",
            .allowed = "administrator, operator, tenant, reader or aggregator",
            .standard = "tenant"});
  add_text(*sub, "--name", wanted->name,
           {.value = "NAME", .help = "Name of the holder, for logs", .standard = "the tenant's"});
  service::described(sub->add_option("--scope", wanted->scopes)->delimiter(','),
                     {.value = "WORD,...",
                      .help = "Routes to which the role is limited",
                      .allowed = "read, groups, plan, aggregators, drain, topology, tokens or tenants"});
  add_life(*sub, "--life", wanted->life_s, "Life of the token")->required();
  add_life(*sub, "--renewable", wanted->renewable_s, "Greatest life of the token with renewals", "no renewal");
  add_text(*sub, "--key-file", wanted->key_file,
           {.value = "FILE", .help = "Sign with this file's first key, and ask no manager"});
  add_text(*sub, "--output-file,-O", wanted->output,
           {.value = "FILE", .help = "Write the token to this file, with mode 0600", .standard = "standard output"});
  sub->callback([=, &action] { action = [=] { return make_token(*options, *wanted); }; });
}

void describe_show_token(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("show", "Show what a token says; its seal is not checked");
  const auto options = std::make_shared<ManagerOptions>();
  const auto token = std::make_shared<std::string>();
  add_text(*sub, "token", *token, {.value = "TOKEN", .help = "The token", .standard = "the token of --token-file"});
  add_text(*sub, "--token-file", options->token_file,
           {.value = "FILE", .help = "File with the token", .standard = "TRIBUTARY_TOKEN_FILE"});
  add_output_form(*sub, *options);
  sub->callback([=, &action] { action = [=] { return show_token(*options, *token); }; });
}

void describe_renew(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("renew", "Renew the token in a file, by the manager");
  const auto options = add_manager_access(*sub);
  sub->callback([=, &action] { action = [=] { return renew_token(*options); }; });
}

void describe_revoke(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("revoke", "Revoke a token, and all its renewals");
  const auto options = add_manager_access(*sub);
  const auto token = std::make_shared<std::string>();
  add_text(*sub, "token", *token, {.value = "TOKEN", .help = "The token, or its id; -: a line of standard input"})
      ->required();
  sub->callback([=, &action] { action = [=] { return revoke_token(*options, *token); }; });
}

void describe_new_key(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("new-key", "Put a new signing key before the other keys of a key file");
  const auto file = std::make_shared<std::string>();
  add_text(*sub, "key-file", *file, {.value = "FILE", .help = "The file; it is made if it is missing"})->required();
  sub->callback([=, &action] { action = [=] { return add_token_key(*file); }; });
}

}  // namespace

void describe_token(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("token", "Make, show, renew and revoke tokens that prove who asks the manager");
  sub->require_subcommand(1);
  describe_make(*sub, action);
  describe_show_token(*sub, action);
  describe_renew(*sub, action);
  describe_revoke(*sub, action);
  describe_new_key(*sub, action);
}

}  // namespace tributary::cli
