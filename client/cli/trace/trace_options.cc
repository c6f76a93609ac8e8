#include "client/cli/trace/trace_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/manager/access_options.h"
#include "client/cli/trace/trace_command.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

constexpr double kSecondsMin = 0.01, kSecondsMax = 10;

}  // namespace

void describe_trace(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("trace", "Record what a job's ranks and aggregators do, for Perfetto");
  const auto options = std::make_shared<TraceOptions>();
  service::add_text(*sub, "--job", options->job,
                    {.value = "NAME", .help = "The job", .standard = "the only job on this machine"});
  service::add_number(*sub, "--seconds", options->seconds, kSecondsMin, kSecondsMax,
                      {.value = "SECONDS", .help = "How long to record", .standard = "2"});
  service::add_text(*sub, "--into", options->into,
                    {.value = "FILE", .help = "The file to write", .standard = "trace-JOB.json"});
  CLI::Option* const parts =
      service::add_text(*sub, "--parts", options->parts,
                        {.value = "FILE", .help = "Write what was recorded to this file, for --merge, and no trace"});
  service::add_text(
      *sub, "--otlp", options->otlp,
      {.value = "URL",
       .help = "Send the operations, as spans, also to this collector of OpenTelemetry, such as http://localhost:4318"})
      ->excludes(parts);
  sub->add_option("--merge", options->merged, "Make one trace of what several hosts have recorded with --parts")
      ->type_name("FILE...")
      ->excludes(parts);
  service::add_text(*sub, "--dir", options->folder,
                    {.value = "FOLDER",
                     .help = "Folder of the ranks' status ports",
                     .standard = "TRIBUTARY_STATUS_DIR, or /tmp/tributary-UID"});
  add_access(*sub, options->manager);
  add_time_limit(*sub, options->manager);
  sub->callback([=, &action] { action = [=] { return trace(*options); }; });
}

}  // namespace tributary::cli
