#pragma once
// Turns the texts of other programs into a topology: recognizes the format, reads it, and arranges the found fabric.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/topology/import/arrange.h"
#include "tree-manager/topology/import/lldp.h"
#include "tree-manager/topology/import/slurm_conf.h"

namespace tributary::manager {

enum class ImportFormat : std::uint8_t { ibnetdiscover, slurm_conf, slurm_yaml, lldp };
inline constexpr ImportFormat kImportFormats[] = {ImportFormat::ibnetdiscover, ImportFormat::slurm_conf,
                                                  ImportFormat::slurm_yaml, ImportFormat::lldp};
/// The names are "ibnetdiscover", "topology.conf", "topology.yaml" and "lldp".
[[nodiscard]] std::string_view to_string(ImportFormat format) noexcept;
[[nodiscard]] std::optional<ImportFormat> import_format_of(std::string_view text);

inline constexpr std::size_t kImportTextBytesMax = std::size_t{256} << 20;
inline constexpr std::size_t kImportFilesMax = 1U << 16;

struct ImportOptions {
  std::optional<ImportFormat> format;  // empty: recognized from the text
  ImportRates rates;
  std::string slurm_topology;  // name of a topology in topology.yaml; empty: the default one
  ReadIncluded included;       // reads files that topology.conf includes; empty: an Include is a mistake
  LldpOptions lldp;
};

/// Reads one text, or with lldp the texts of many machines. Errc::bad_config names every mistake with its file and
/// line.
[[nodiscard]] Result<Imported> import_topology(const std::vector<LldpText>& texts, const ImportOptions& options);

}  // namespace tributary::manager
