#pragma once
// Turns the texts of other programs into a topology: tells the format, reads it, arranges what was found.
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
/// "ibnetdiscover", "topology.conf", "topology.yaml", "lldp".
[[nodiscard]] std::string_view to_string(ImportFormat format) noexcept;
[[nodiscard]] std::optional<ImportFormat> import_format_of(std::string_view text);

inline constexpr std::size_t kImportTextBytesMax = std::size_t{256} << 20;
inline constexpr std::size_t kImportFilesMax = 1U << 16;

struct ImportOptions {
  std::optional<ImportFormat> format;  // none: the text tells
  ImportRates rates;
  std::string slurm_topology;  // of topology.yaml; empty: the default one
  ReadIncluded included;       // of topology.conf; empty: an Include is a mistake
  LldpOptions lldp;
};

/// Reads one text, or with lldp those of many machines. Errc::bad_config names every mistake with its file and line.
[[nodiscard]] Result<Imported> import_topology(const std::vector<LldpText>& texts, const ImportOptions& options);

}  // namespace tributary::manager
