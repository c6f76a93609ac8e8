#include "tree-manager/topology/import/import.h"

#include <utility>

#include "tree-manager/topology/import/ibnetdiscover.h"
#include "tree-manager/topology/import/slurm_yaml.h"

namespace tributary::manager {
namespace {

Result<FoundFabric> found_in(ImportFormat format, const std::vector<LldpText>& texts, const ImportOptions& options) {
  const LldpText& first = texts.front();
  switch (format) {
    case ImportFormat::ibnetdiscover:
      return read_ibnetdiscover(first.text, first.file);
    case ImportFormat::slurm_conf:
      return read_slurm_conf(first.text, first.file, options.included);
    case ImportFormat::slurm_yaml:
      return read_slurm_yaml(first.text, first.file, options.slurm_topology);
    case ImportFormat::lldp:
      return read_lldp(texts, options.lldp);
  }
  std::unreachable();
}

}  // namespace

std::string_view to_string(ImportFormat format) noexcept {
  switch (format) {
    case ImportFormat::ibnetdiscover:
      return "ibnetdiscover";
    case ImportFormat::slurm_conf:
      return "topology.conf";
    case ImportFormat::slurm_yaml:
      return "topology.yaml";
    case ImportFormat::lldp:
      return "lldp";
  }
  std::unreachable();
}

std::optional<ImportFormat> import_format_of(std::string_view text) {
  if (looks_like_ibnetdiscover(text)) return ImportFormat::ibnetdiscover;
  if (looks_like_slurm_conf(text)) return ImportFormat::slurm_conf;
  if (looks_like_slurm_yaml(text)) return ImportFormat::slurm_yaml;
  if (looks_like_lldp(text)) return ImportFormat::lldp;
  return std::nullopt;
}

Result<Imported> import_topology(const std::vector<LldpText>& texts, const ImportOptions& options) {
  if (texts.empty()) return fail(Errc::bad_config, "nothing to import");
  const LldpText& first = texts.front();
  const auto format = options.format ? options.format : import_format_of(first.text);
  if (!format) {
    return fail(Errc::bad_config, first.file +
                                      ": this is none of the formats that are read here; accepted are the output "
                                      "of ibnetdiscover (also with -p), Slurm's topology.conf and "
                                      "topology.yaml, and the output of lldpcli -f json");
  }
  if (texts.size() > 1 && *format != ImportFormat::lldp) {
    return fail(Errc::bad_config, "one file of " + std::string(to_string(*format)) + " is expected; " +
                                      std::to_string(texts.size()) + " were given");
  }
  auto found = found_in(*format, texts, options);
  if (!found) return std::unexpected(found.error());
  auto imported = arrange(std::move(*found), options.rates);
  if (!imported) return fail(Errc::bad_config, first.file + ": " + imported.error().message);
  return imported;
}

}  // namespace tributary::manager
