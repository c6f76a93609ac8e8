#include "client/cli/topology/import_command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/topology/topology_views.h"
#include "service-kit/settings_file.h"
#include "tree-manager/topology/name_range.h"
#include "tree-manager/topology/topology_yaml.h"

namespace tributary::cli {
namespace {

using manager::LldpText;

Result<std::vector<LldpText>> read_texts(std::vector<std::string> files) {
  if (files.empty()) files.emplace_back("-");
  if (files.size() > manager::kImportFilesMax) {
    return fail(Errc::bad_config, "more than " + std::to_string(manager::kImportFilesMax) + " files");
  }
  std::vector<LldpText> texts;
  std::size_t bytes = 0;
  for (const std::string& file : files) {
    auto text = read_topology_text(file);
    if (!text) return std::unexpected(text.error());
    bytes += text->size();
    if (bytes > manager::kImportTextBytesMax) return fail(Errc::bad_config, "the files are too long together");
    const bool named = file != "-";
    texts.push_back({.file = named ? file : "standard input",
                     .machine = named ? std::filesystem::path(file).stem().string() : std::string(),
                     .text = std::move(*text)});
  }
  return texts;
}

/// Returns a reader of included files: they are in the folder of the first file, as for Slurm.
manager::ReadIncluded included_beside(const std::vector<std::string>& files) {
  if (files.empty() || files.front() == "-") return {};
  return [folder = std::filesystem::path(files.front()).parent_path()](const std::string& name) {
    return service::read_file((folder / name).string(), manager::kImportTextBytesMax);
  };
}

Status expand_into(const std::vector<std::string>& ranges, std::vector<std::string>& names) {
  for (const std::string& range : ranges) {
    auto expanded = manager::expand_names(range);
    if (!expanded) return fail(Errc::bad_argument, "--hosts: " + expanded.error().message);
    names.insert(names.end(), std::make_move_iterator(expanded->begin()), std::make_move_iterator(expanded->end()));
  }
  return {};
}

Status write_topology(const std::string& text, const std::string& file) {
  if (file.empty()) {
    const bool good = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    return good ? Status() : fail(Errc::io, "standard output cannot be written");
  }
  std::ofstream out(file, std::ios::trunc);
  out << text << std::flush;
  return out ? Status() : fail(Errc::io, "the file " + file + " cannot be written; check the path and its permissions");
}

}  // namespace

int import_topology_files(const ImportCommand& command) {
  manager::ImportOptions settings = command.settings;
  if (auto ok = expand_into(command.hosts, settings.lldp.hosts); !ok) return topology_error(ok.error());
  auto texts = read_texts(command.files);
  if (!texts) return topology_error(texts.error());
  settings.included = included_beside(command.files);
  const auto imported = import_topology(*texts, settings);
  if (!imported) return topology_error(imported.error());
  for (const std::string& warning : imported->warnings) {
    std::fprintf(stderr, "tributary: warning: %s\n", printable(warning).c_str());
  }
  const std::string yaml = topology_yaml(imported->topology);
  // Check the result: the command must not write a topology that the manager would refuse.
  if (const auto read = manager::parse_topology(yaml, "the imported topology"); !read)
    return topology_error(read.error());
  const auto done = write_topology(yaml, command.output);
  return done ? kExitGood : topology_error(done.error());
}

}  // namespace tributary::cli
