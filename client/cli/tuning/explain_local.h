#pragma once
// tributary explain, of ranks that are all on one host: they share its memory, and no link or tree has a part in it.
#include "client/cli/tuning/explain.h"

namespace tributary::cli {

/// Nobody forbids ranks of one host to share memory.
[[nodiscard]] bool may_share_memory();
/// And all ranks are said to be on one.
[[nodiscard]] bool all_on_one_host(const ExplainOptions& options);
void explain_local(const ExplainOptions& options);

}  // namespace tributary::cli
