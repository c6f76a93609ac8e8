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
  auto* sub =
      app.add_subcommand("metrics", "Write the metrics of the ranks on this host, for Prometheus or OpenTelemetry");
  const auto options = std::make_shared<MetricsOptions>();
  service::add_text(*sub, "--job", options->job,
                    {.value = "NAME", .help = "Only the ranks of this job", .standard = "all ranks on this host"});
  service::add_text(
      *sub, "--into", options->into,
      {.value = "FILE", .help = "The file to write, for the textfile collector", .standard = "the standard output"});
  service::add_text(
      *sub, "--otlp", options->otlp,
      {.value = "URL", .help = "Send the metrics to this collector of OpenTelemetry, such as http://localhost:4318"});
  service::add_number(*sub, "--every", options->every_seconds, kSecondsMin, kSecondsMax,
                      {.value = "SECONDS", .help = "Write the file, or send, again and again, until Ctrl-C"});
  service::add_text(*sub, "--dir", options->folder,
                    {.value = "FOLDER",
                     .help = "Folder of the ranks' status ports",
                     .standard = "TRIBUTARY_STATUS_DIR, or /tmp/tributary-UID"});
  sub->callback([=, &action] {
    if (options->every_seconds > 0 && options->into.empty() && options->otlp.empty())
      throw CLI::RequiresError("--every", "--into or --otlp");
    action = [=] { return write_metrics(*options); };
  });
}

}  // namespace tributary::cli
