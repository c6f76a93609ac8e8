#pragma once
// The part of `tributary explain` for ranks on one host: they share its memory, and use neither link nor tree.
#include "client/cli/tuning/explain.h"

namespace tributary::cli {

/// True if no setting forbids ranks of one host to share memory.
[[nodiscard]] bool may_share_memory();
/// True if may_share_memory(), and the options put all ranks on one host.
[[nodiscard]] bool all_on_one_host(const ExplainOptions& options);
void explain_local(const ExplainOptions& options);

}  // namespace tributary::cli
