#include "client/cli/topology/topology_views.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/topology/fabric_drawing.h"
#include "service-kit/settings_file.h"
#include "tree-manager/topology/difference.h"
#include "tree-manager/topology/topology_json.h"
#include "tree-manager/topology/topology_yaml.h"

namespace tributary::cli {
namespace {

using manager::Topology;
using nlohmann::json;

constexpr std::size_t kTextBytesMax = std::size_t{256} << 20;
constexpr int kExitDiffers = 1;
constexpr int kExitTrouble = 2;

int print_out(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? kExitGood : kExitFailed;
}

std::string json_text(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

/// A topology, its origin, and the manager's document if the manager gave it.
struct Source {
  Topology topology;
  std::string name;
  json document;
};

Result<Source> in_use(const ManagerOptions& options) {
  auto client = connect(options);
  if (!client) return std::unexpected(client.error());
  auto document = client->get("/v1/topology");
  if (!document) return std::unexpected(document.error());
  auto topology = manager::topology_from_json(*document);
  if (!topology) return std::unexpected(topology.error());
  return Source{std::move(*topology), "the topology in use, from " + document->value("source", "the manager"),
                std::move(*document)};
}

Result<Source> from_file(const std::string& file) {
  const std::string name = file == "-" ? "standard input" : file;
  const auto text = read_topology_text(file);
  if (!text) return std::unexpected(text.error());
  auto topology = manager::parse_topology(*text, name);
  if (!topology) return std::unexpected(topology.error());
  return Source{std::move(*topology), name, nullptr};
}

}  // namespace

int topology_error(const Error& error) {
  std::fprintf(stderr, "tributary: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

std::optional<TopologyForm> topology_form_of(std::string_view text) {
  if (text == "table") return TopologyForm::table;
  if (text == "json") return TopologyForm::json;
  if (text == "yaml") return TopologyForm::yaml;
  return std::nullopt;
}

Result<std::string> read_topology_text(const std::string& file) {
  if (file != "-") {
    auto text = service::read_file(file, kTextBytesMax);
    if (!text) {
      return fail(Errc::bad_config, "the file " + file + " cannot be read: " + text.error().message +
                                        "; check the path and its permissions");
    }
    return text;
  }
  std::string text;
  for (std::istreambuf_iterator<char> it(std::cin), end; it != end; ++it) {
    if (text.size() >= kTextBytesMax) return fail(Errc::bad_config, "standard input is too long");
    text += *it;
  }
  return text;
}

int show_topology(const ManagerOptions& options, const std::string& file, TopologyForm form) {
  auto source = file.empty() ? in_use(options) : from_file(file);
  if (!source) return topology_error(source.error());
  if (form == TopologyForm::yaml) return print_out(topology_yaml(source->topology));
  if (form == TopologyForm::table) return print_out(draw_fabric(source->topology, printable(source->name)));
  return print_out(json_text(source->document.is_null() ? to_json(source->topology) : source->document));
}

int compare_topologies(const ManagerOptions& options, const std::vector<std::string>& files) {
  const auto before = files.size() == 1 ? in_use(options) : from_file(files[0]);
  const auto after = before ? from_file(files.back()) : before;
  if (!after) {
    const int code = topology_error(after.error());
    return code == kExitDiffers ? kExitTrouble : code;
  }
  const auto difference = manager::compare(before->topology, after->topology);
  if (difference.none()) return kExitGood;
  std::string text = "--- " + before->name + "\n+++ " + after->name + "\n";
  for (const std::string& line : difference.lines) text += printable(line) + "\n";
  if (print_out(text) != kExitGood) return kExitTrouble;
  return kExitDiffers;
}

}  // namespace tributary::cli
