#include "client/cli/topology/topology_command.h"

#include <CLI/CLI.hpp>

#include "client/cli/topology/import_command.h"
#include "client/cli/topology/topology_views.h"
#include "service-kit/units.h"

namespace tributary::cli {
namespace {

using Action = std::function<int()>;

void add_access(CLI::App& sub, ManagerOptions& options) {
  sub.add_option("--manager", options.url, "The manager's URL, http://HOST:7470 (TRIBUTARY_MANAGER)");
  sub.add_option("--token-file", options.token_file, "A file with one of the manager's tokens (TRIBUTARY_TOKEN_FILE)");
  sub.add_option("--time-limit", options.seconds_max, "Seconds that the manager has to answer (10)")
      ->check(CLI::Range(0.05, 3600.0));
}

void add_form(CLI::App& sub, TopologyForm& form) {
  sub.add_option_function<std::string>(
         "--output,-o",
         [&form](const std::string& text) {
           const auto found = topology_form_of(text);
           if (!found) throw CLI::ValidationError("--output", "'" + text + "' is not one of table, json, yaml");
           form = *found;
         },
         "table, json or yaml")
      ->type_name("");
}

void add_rate(CLI::App& sub, const char* name, std::uint64_t& into, const char* help) {
  sub.add_option_function<std::string>(
         name,
         [&into, name](const std::string& text) {
           const auto rate = service::naming(text, service::parse_rate(text));
           if (!rate) throw CLI::ValidationError(name, rate.error().message);
           if (*rate == 0) throw CLI::ValidationError(name, "a rate of 0 carries nothing");
           into = *rate;
         },
         help)
      ->type_name("");
}

struct ShowOptions {
  ManagerOptions access;
  TopologyForm form = TopologyForm::table;
  std::string file;
};

void describe_show(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("show", "Draw the fabric that the manager uses, or a file's fabric");
  const auto options = std::make_shared<ShowOptions>();
  add_access(*sub, options->access);
  add_form(*sub, options->form);
  sub->add_option("file", options->file, "A topology file; -: standard input (the topology in use)");
  sub->callback(
      [=, &action] { action = [=] { return show_topology(options->access, options->file, options->form); }; });
}

void describe_diff(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("diff", "Compare a topology file with the topology in use, or with another file");
  sub->footer("Exit codes: 0 both are the same, 1 they differ, 2 and above trouble.");
  const auto access = std::make_shared<ManagerOptions>();
  const auto file = std::make_shared<std::string>();
  const auto other = std::make_shared<std::string>();
  add_access(*sub, *access);
  sub->add_option("file", *file, "A topology file; -: standard input")->required();
  sub->add_option("other", *other,
                  "A second file: compare the first with it (compare the topology in use with the first)");
  sub->callback([=, &action] {
    action = [=] {
      std::vector<std::string> files{*file};
      if (!other->empty()) files.push_back(*other);
      return compare_topologies(*access, files);
    };
  });
}

void describe_import(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("import", "Make a topology file from what other programs say of the fabric");
  sub->footer(
      "Reads the output of ibnetdiscover (also with -p), Slurm's topology.conf and topology.yaml, and the output of\n"
      "lldpcli -f json show neighbors details, in a file for each machine, named after it.\n"
      "Example: ibnetdiscover | tributary topology import --output-file topology.yaml");
  const auto options = std::make_shared<ImportCommand>();
  sub->add_option("files", options->files, "Files to read; -, or none: standard input");
  sub->add_option_function<std::string>(
         "--format",
         [options](const std::string& text) {
           for (const auto format : manager::kImportFormats) {
             if (to_string(format) == text) options->settings.format = format;
           }
           if (text != "auto" && !options->settings.format)
             throw CLI::ValidationError(
                 "--format", "'" + text + "' is not one of auto, ibnetdiscover, topology.conf, topology.yaml, lldp");
         },
         "auto, ibnetdiscover, topology.conf, topology.yaml or lldp (auto)")
      ->type_name("");
  sub->add_option("--output-file,-O", options->output, "Write the topology to this file (standard output)");
  add_rate(*sub, "--rate", options->settings.rates.host_bits_per_second,
           "Rate of links whose source gives none, such as 100Gbit/s");
  add_rate(*sub, "--switch-rate", options->settings.rates.switch_bits_per_second,
           "Rate of links between switches whose source gives none (--rate; for Slurm, what all hosts below can send)");
  sub->add_option("--slurm-topology", options->settings.slurm_topology,
                  "Name of a topology in topology.yaml (the cluster's default)");
  sub->add_option("--hosts", options->hosts,
                  "For lldp alone: ranges of machines that are hosts although they forward packets")
      ->allow_extra_args(false);
  sub->add_flag("--rails", options->settings.lldp.rails,
                "For lldp alone: each port of a host is an interface of its own, not part of a bond");
  sub->callback([=, &action] { action = [=] { return import_topology_files(*options); }; });
}

}  // namespace

void describe_topology(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("topology", "Show the fabric as the manager knows it, compare it, or import one");
  sub->require_subcommand(0, 1);
  const auto options = std::make_shared<ShowOptions>();
  add_access(*sub, options->access);
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
