#include "client/cli/token/token_command.h"

#include <CLI/CLI.hpp>

#include "client/cli/token/token_actions.h"
#include "service-kit/units.h"

namespace tributary::cli {
namespace {

using Action = std::function<int()>;

constexpr std::int64_t kDay = 24LL * 3600;

std::shared_ptr<ManagerOptions> add_manager_access(CLI::App& sub) {
  const auto options = std::make_shared<ManagerOptions>();
  sub.add_option("--manager", options->url, "The manager's URL, http://HOST:7470 (TRIBUTARY_MANAGER)");
  sub.add_option("--token-file", options->token_file, "A file with your own token (TRIBUTARY_TOKEN_FILE)");
  sub.add_option("--time-limit", options->seconds_max, "Seconds that the manager has to answer (10)")
      ->check(CLI::Range(0.05, 3600.0));
  return options;
}

/// Reads a time such as "90s", "2h" or "30d".
Result<std::int64_t> parse_life(const std::string& text) {
  if (text.ends_with('d')) {
    const auto days = service::parse_number<std::uint32_t>(std::string_view(text).substr(0, text.size() - 1));
    if (days && *days >= 1 && *days <= 366) return *days * kDay;
    return fail(Errc::bad_argument, "'" + text + "': a token lasts 1 s to 366 days");
  }
  const auto time = service::naming(text, service::parse_duration(text));
  if (!time) return std::unexpected(time.error());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*time).count();
  if (seconds >= 1 && seconds <= 366 * kDay) return seconds;
  return fail(Errc::bad_argument, "'" + text + "': a token lasts 1 s to 366 days");
}

CLI::Option* add_life(CLI::App& sub, const char* name, std::int64_t& into, const char* help) {
  return sub
      .add_option_function<std::string>(
          name,
          [&into, name](const std::string& text) {
            const auto life = parse_life(text);
            if (!life) throw CLI::ValidationError(name, life.error().message);
            into = *life;
          },
          help)
      ->type_name("");
}

void describe_make(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("make", "Make a token, with a signing key or by the manager");
  sub->footer(
      "Whoever has the key file makes any token. The manager makes tokens for administrators and operators.\n"
      "Example: tributary token make --tenant physics --job train --life 2h --key-file /etc/tributary/identity.keys");
  const auto options = add_manager_access(*sub);
  const auto wanted = std::make_shared<TokenWanted>();
  sub->add_option("--tenant", wanted->tenant, "Owner of the groups that the token asks for: role tenant");
  sub->add_option("--job", wanted->job, "Only groups of this job: role tenant (all jobs)");
  sub->add_option("--role", wanted->role, "Role (tenant): administrator, operator, tenant, reader, aggregator");
  sub->add_option("--name", wanted->name, "Name of the holder, for logs (the tenant's)");
  sub->add_option("--scope", wanted->scopes,
                  "Narrow the role down: read, groups, plan, aggregators, drain, topology, tokens")
      ->delimiter(',');
  add_life(*sub, "--life", wanted->life_s, "How long the token is good, such as 90s, 2h or 30d")->required();
  add_life(*sub, "--renewable", wanted->renewable_s, "How long renewals may make it last (no renewal)");
  sub->add_option("--key-file", wanted->key_file, "Sign with this file's first key, and ask no manager");
  sub->add_option("--output-file,-O", wanted->output, "Write the token to this file, with mode 0600 (standard output)");
  sub->callback([=, &action] { action = [=] { return make_token(*options, *wanted); }; });
}

void describe_show_token(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("show", "Show what a token says; its seal is not checked");
  const auto options = std::make_shared<ManagerOptions>();
  const auto token = std::make_shared<std::string>();
  sub->add_option("token", *token, "The token (that of --token-file)");
  sub->add_option("--token-file", options->token_file, "A file with the token (TRIBUTARY_TOKEN_FILE)");
  sub->add_option_function<std::string>(
         "--output,-o",
         [options](const std::string& text) {
           const auto form = parse_output_form(text);
           if (!form) throw CLI::ValidationError("--output", form.error().message);
           options->form = *form;
         },
         kOutputForms)
      ->type_name("");
  sub->callback([=, &action] { action = [=] { return show_token(*options, *token); }; });
}

void describe_renew(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("renew", "Renew the token in a file, by the manager");
  const auto options = add_manager_access(*sub);
  sub->callback([=, &action] { action = [=] { return renew_token(*options); }; });
}

void describe_revoke(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("revoke", "Make a token, and all its renewals, good for nothing");
  const auto options = add_manager_access(*sub);
  const auto token = std::make_shared<std::string>();
  sub->add_option("token", *token, "The token, or its id; -: a line of standard input")->required();
  sub->callback([=, &action] { action = [=] { return revoke_token(*options, *token); }; });
}

void describe_new_key(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("new-key", "Put a new signing key before the others of a key file");
  const auto file = std::make_shared<std::string>();
  sub->add_option("key-file", *file, "The file; it is made if it is missing")->required();
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
