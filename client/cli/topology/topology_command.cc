#include "client/cli/topology/topology_command.h"

#include <CLI/CLI.hpp>

#include "client/cli/manager/access_options.h"
#include "client/cli/topology/import_command.h"
#include "client/cli/topology/topology_views.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"

namespace tributary::cli {
namespace {

using Action = std::function<int()>;

void add_manager(CLI::App& sub, ManagerOptions& options) {
  add_access(sub, options);
  add_time_limit(sub, options);
}

void add_form(CLI::App& sub, TopologyForm& form) {
  service::add_parsed(
      sub, "--output,-o", form,
      {.value = "FORM", .help = "Form of the output", .allowed = "table, json or yaml", .standard = "table"},
      [](const std::string& text) -> Result<TopologyForm> {
        if (const auto found = topology_form_of(text)) return *found;
        return fail(Errc::bad_argument, "it is none of these");
      });
}

void add_rate(CLI::App& sub, const char* name, std::uint64_t& into, const char* help, const char* standard) {
  service::add_parsed(
      sub, name, into,
      {.value = "RATE", .help = help, .allowed = "a rate such as 100Gbit/s, from 1bit/s", .standard = standard},
      [](const std::string& text) {
        auto rate = service::parse_rate(text);
        return rate && *rate == 0 ? fail(Errc::bad_argument, "it is below 1bit/s") : rate;
      });
}

void add_format(CLI::App& sub, std::optional<manager::ImportFormat>& into) {
  service::add_parsed(sub, "--format", into,
                      {.value = "FORMAT",
                       .help = "Format of the files",
                       .allowed = "auto, ibnetdiscover, topology.conf, topology.yaml or lldp",
                       .standard = "auto"},
                      [](const std::string& text) -> Result<std::optional<manager::ImportFormat>> {
                        if (text == "auto") return std::nullopt;
                        for (const auto format : manager::kImportFormats) {
                          if (to_string(format) == text) return format;
                        }
                        return fail(Errc::bad_argument, "it is none of these");
                      });
}

struct ShowOptions {
  ManagerOptions access;
  TopologyForm form = TopologyForm::table;
  std::string file;
};

void describe_show(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("show", "Draw the fabric that the manager uses, or a file's fabric");
  const auto options = std::make_shared<ShowOptions>();
  add_manager(*sub, options->access);
  add_form(*sub, options->form);
  service::add_text(*sub, "file", options->file,
                    {.value = "FILE", .help = "A topology file; -: standard input", .standard = "the topology in use"});
  sub->callback(
      [=, &action] { action = [=] { return show_topology(options->access, options->file, options->form); }; });
}

void describe_diff(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("diff", "Compare a topology file with the topology in use, or with another file");
  sub->footer("Exit codes: 0 both are the same, 1 they differ, 2 or more: the command failed.");
  const auto access = std::make_shared<ManagerOptions>();
  const auto file = std::make_shared<std::string>();
  const auto other = std::make_shared<std::string>();
  add_manager(*sub, *access);
  service::add_text(*sub, "file", *file, {.value = "FILE", .help = "A topology file; -: standard input"})->required();
  service::add_text(
      *sub, "other", *other,
      {.value = "FILE", .help = "A second file: compare the first with it", .standard = "the topology in use"});
  sub->callback([=, &action] {
    action = [=] {
      std::vector<std::string> files{*file};
      if (!other->empty()) files.push_back(*other);
      return compare_topologies(*access, files);
    };
  });
}

void describe_import(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("import", "Make a topology file from other programs' output about the fabric");
  sub->footer(
      "Reads the output of ibnetdiscover (also with -p), Slurm's topology.conf and topology.yaml, and the output of\n"
      "lldpcli -f json show neighbors details, in a file for each machine, named after it.\n"
      "Example: ibnetdiscover | tributary topology import --output-file topology.yaml");
  const auto options = std::make_shared<ImportCommand>();
  service::described(sub->add_option("files", options->files),
                     {.value = "FILE", .help = "Files to read; -, or none: standard input"});
  add_format(*sub, options->settings.format);
  service::add_text(*sub, "--output-file,-O", options->output,
                    {.value = "FILE", .help = "Write the topology to this file", .standard = "standard output"});
  add_rate(*sub, "--rate", options->settings.rates.host_bits_per_second,
           "Rate of links for which the source gives no rate", "none");
  add_rate(*sub, "--switch-rate", options->settings.rates.switch_bits_per_second,
           "Rate of links between switches for which the source gives no rate",
           "--rate; for Slurm, the rate of all hosts below together");
  service::add_text(*sub, "--slurm-topology", options->settings.slurm_topology,
                    {.value = "NAME", .help = "Name of a topology in topology.yaml", .standard = "the cluster's"});
  service::described(
      sub->add_option("--hosts", options->hosts)->allow_extra_args(false),
      {.value = "NAME,...", .help = "Only for lldp: ranges of machines that are hosts although they forward packets"});
  sub->add_flag("--rails", options->settings.lldp.rails,
                "Only for lldp: each port of a host is an interface of its own, not part of a bond");
  sub->callback([=, &action] { action = [=] { return import_topology_files(*options); }; });
}

}  // namespace

void describe_topology(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("topology", "Show the fabric as the manager knows it, compare it, or import a fabric");
  sub->require_subcommand(0, 1);
  const auto options = std::make_shared<ShowOptions>();
  add_manager(*sub, options->access);
  add_form(*sub, options->form);
  describe_show(*sub, action);
  describe_diff(*sub, action);
  describe_import(*sub, action);
  sub->footer(
      "Without a subcommand: the same as tributary topology show.");  // set after the subcommands, which replace it
  sub->callback([=, &action] {
    if (sub->get_subcommands().empty()) action = [=] { return show_topology(options->access, "", options->form); };
  });
}

}  // namespace tributary::cli
