#include "client/cli/dump/dump_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/dump/dump_command.h"
#include "client/cli/manager/access_options.h"
#include "service-kit/program_options.h"

namespace tributary::cli {
namespace {

constexpr std::uint32_t kLastMax = 257;

Result<DumpForm> parse_form(const std::string& text) {
  if (text == "text") return DumpForm::text;
  if (text == "json") return DumpForm::json;
  if (text == "fr_trace") return DumpForm::fr_trace;
  return fail(Errc::bad_argument, "it is none of these");
}

void check(const DumpOptions& options) {
  if (!options.save.empty() && (!options.job.empty() || options.only_late || options.form != DumpForm::text))
    throw service::WrongUse({.where = "tributary dump",
                             .key = "--save",
                             .value = options.save,
                             .why = "it saves all records as they are",
                             .allowed = "--save without --job, --form and --only-late: give these with --dir"});
  if (options.form == DumpForm::fr_trace && options.into.empty())
    throw service::WrongUse({.where = "tributary dump",
                             .key = "--form",
                             .value = "fr_trace",
                             .why = "it writes a file for each rank, and --into names no folder",
                             .allowed = "fr_trace together with --into FOLDER"});
  if (options.form == DumpForm::fr_trace && options.only_late)
    throw service::WrongUse({.where = "tributary dump",
                             .key = "--only-late",
                             .value = "",
                             .why = "the analyzer needs the records of all ranks",
                             .allowed = "--only-late with text or json"});
}

}  // namespace

void describe_dump(CLI::App& app, std::function<int()>& action) {
  auto* sub =
      app.add_subcommand("dump", "Show the last operations of the ranks on this machine, and who has not called");
  const auto options = std::make_shared<DumpOptions>();
  service::add_text(*sub, "--dir", options->folder,
                    {.value = "FOLDER",
                     .help = "Folder of the ranks' status ports, or of the files that failed ranks wrote",
                     .standard = "TRIBUTARY_STATUS_DIR, or /tmp/tributary-UID"});
  service::add_text(*sub, "--job", options->job,
                    {.value = "NAME", .help = "Only the ranks of this job", .standard = "all"});
  service::add_parsed(*sub, "--form,-o", options->form,
                      {.value = "FORM",
                       .help = "Form of the output; fr_trace writes files for PyTorch's analyzer",
                       .allowed = "text, json or fr_trace",
                       .standard = "text"},
                      parse_form);
  service::add_text(*sub, "--into", options->into,
                    {.value = "FOLDER", .help = "With fr_trace: the new folder for the files"});
  service::add_number(*sub, "--last", options->last, 0, kLastMax,
                      {.value = "N", .help = "How many operations of each rank the text shows", .standard = "3"});
  sub->add_flag("--only-late", options->only_late,
                "Show only the ranks for whose call others have waited 100 ms or longer");
  service::add_text(*sub, "--save", options->save,
                    {.value = "FOLDER",
                     .help = "Save the records of this machine's ranks in this folder, which several hosts may share; "
                             "compare them by --dir FOLDER"});
  add_access(*sub, options->manager);
  add_time_limit(*sub, options->manager);
  sub->callback([=, &action] {
    check(*options);
    action = [=] { return dump(*options); };
  });
}

}  // namespace tributary::cli
