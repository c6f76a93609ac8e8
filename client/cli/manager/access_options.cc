#include "client/cli/manager/access_options.h"

#include "service-kit/program_options.h"

namespace tributary::cli {

void add_access(CLI::App& sub, ManagerOptions& options, const std::string& token_help) {
  service::add_text(sub, "--manager", options.url,
                    {.value = "URL",
                     .help = "The manager's address",
                     .allowed = "http://HOST:7470",
                     .standard = "TRIBUTARY_MANAGER"});
  service::add_text(sub, "--token-file", options.token_file,
                    {.value = "FILE", .help = token_help, .standard = "TRIBUTARY_TOKEN_FILE"});
}

void add_time_limit(CLI::App& sub, ManagerOptions& options) {
  service::add_number(sub, "--time-limit", options.seconds_max, 0.05, 3600,
                      {.value = "SECONDS", .help = "Time within which the manager must answer", .standard = "10"});
}

void add_output_form(CLI::App& sub, ManagerOptions& options) {
  service::add_parsed(sub, "--output,-o", options.form,
                      {.value = "FORM", .help = "Form of the output", .allowed = kOutputForms, .standard = "table"},
                      parse_output_form);
}

void add_watch(CLI::App& sub, ManagerOptions& options) {
  service::add_number(sub, "--watch,-W", options.watch_seconds, 0.1, 86400,
                      {.value = "SECONDS",
                       .help = "Show the output again after this time, until you press Ctrl-C",
                       .standard = "2 without a number"})
      ->expected(0, 1)
      ->default_str("2");
}

std::shared_ptr<ManagerOptions> add_manager_options(CLI::App& sub) {
  auto options = std::make_shared<ManagerOptions>();
  add_access(sub, *options);
  add_time_limit(sub, *options);
  add_output_form(sub, *options);
  return options;
}

}  // namespace tributary::cli
