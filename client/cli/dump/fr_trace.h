#pragma once
// Writes flight records in the form of PyTorch's flight recorder, for its analyzer: python -m
// torch.distributed.flight_recorder.fr_trace FOLDER.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/cli/dump/records.h"

namespace tributary::cli {

/// Returns the document of one rank, in the layout that the analyzer reads.
[[nodiscard]] nlohmann::json fr_document(const GroupRecord& group, const RankRecord& record);
/// Returns the document as a Python pickle of protocol 0. The document has no floating-point numbers.
[[nodiscard]] std::string to_pickle(const nlohmann::json& document);
/// Writes a folder for each group, with a file for each rank. Returns a text that names the folders.
[[nodiscard]] Result<std::string> write_fr_files(const GroupRecords& groups, const std::string& into);

}  // namespace tributary::cli
