#include "client/cli/metrics/metrics_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/metrics/metrics_command.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

constexpr double kSecondsMin = 1, kSecondsMax = 3600;

}  // namespace

void describe_metrics(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("metrics", "Write the metrics of the ranks on this host, for Prometheus");
  const auto options = std::make_shared<MetricsOptions>();
  service::add_text(*sub, "--job", options->job,
                    {.value = "NAME", .help = "Only the ranks of this job", .standard = "all ranks on this host"});
  CLI::Option* const into = service::add_text(
      *sub, "--into", options->into,
      {.value = "FILE", .help = "The file to write, for the textfile collector", .standard = "the standard output"});
  service::add_number(*sub, "--every", options->every_seconds, kSecondsMin, kSecondsMax,
                      {.value = "SECONDS", .help = "Write the file again and again, until Ctrl-C"})
      ->needs(into);
  service::add_text(*sub, "--dir", options->folder,
                    {.value = "FOLDER",
                     .help = "Folder of the ranks' status ports",
                     .standard = "TRIBUTARY_STATUS_DIR, or /tmp/tributary-UID"});
  sub->callback([=, &action] { action = [=] { return write_metrics(*options); }; });
}

}  // namespace tributary::cli
