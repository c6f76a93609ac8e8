#pragma once
// From measured times to a table.
#include <vector>

#include "client/tuning/table.h"

namespace tributary::tuning {

/// The rules for what was measured: for each size the quickest path, and the quickest algorithm between the ranks. A
/// rule ends half way, by factors, between two sizes that differ; the last one has no limit. `measured`: one
/// collective, one number of ranks.
[[nodiscard]] std::vector<Rule> rules_of(const std::vector<MeasuredTime>& measured);

/// Figures under which the model says what was measured: message_us, and hop_us with aggregator_us, from the smallest
/// size, where that is at most 4 KiB; the link's rate, or, where the processors are the limit, a core's, from the
/// largest, where that is at least 1 MiB. What was not measured stays.
[[nodiscard]] Figures calibrated(Figures figures, const std::vector<MeasuredTime>& measured);

/// `measured` in `table`, in place of what it had for the same collective and number of ranks; its figures too.
void add_measured(Table& table, const std::vector<MeasuredTime>& measured, const Figures& start);

}  // namespace tributary::tuning
