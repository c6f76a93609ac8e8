#pragma once
// Makes a table from measured times.
#include <vector>

#include "client/tuning/table.h"

namespace tributary::tuning {

/// Returns the rules that follow from measured times: for each size the quickest path, and the quickest algorithm
/// between the ranks. A rule ends at the geometric mean of two sizes whose answers differ; the last one has no limit.
/// `measured` holds one collective and one number of ranks.
[[nodiscard]] std::vector<Rule> rules_of(const std::vector<MeasuredTime>& measured);

/// Returns the figures under which the model gives the measured times. The smallest size, if at most 4 KiB, gives
/// message_us, and hop_us with aggregator_us. The largest, if at least 1 MiB, gives the link's rate or, if the
/// processors are the limit, a core's. Figures that were not measured stay.
[[nodiscard]] Figures calibrated(Figures figures, const std::vector<MeasuredTime>& measured);

/// Puts `measured` into `table`, in place of its entries for the same collective and number of ranks; updates its
/// figures.
void add_measured(Table& table, const std::vector<MeasuredTime>& measured, const Figures& start);

}  // namespace tributary::tuning
