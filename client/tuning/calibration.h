#pragma once
// Makes a tuning table from measured times.
#include <vector>

#include "client/tuning/table.h"

namespace tributary::tuning {

/// Returns the rules that follow from measured times: for each size the quickest path, and the quickest algorithm
/// between the ranks. If two neighbouring sizes have different rules, the first rule ends at their geometric mean; the
/// last rule has no limit. `measured` has times of one collective and one number of ranks.
[[nodiscard]] std::vector<Rule> rules_of(const std::vector<MeasuredTime>& measured);

/// Returns the figures with which the model gives the measured times. The smallest size, if at most 4 KiB, gives
/// message_us, and hop_us with aggregator_us. The largest size, if at least 1 MiB, gives the link's rate or, if the
/// processors are the limit, a core's rate. Figures without a measurement stay as they are.
[[nodiscard]] Figures calibrated(Figures figures, const std::vector<MeasuredTime>& measured);

/// Replaces the entries of `table` for this collective and number of ranks by `measured`; updates the table's figures.
void add_measured(Table& table, const std::vector<MeasuredTime>& measured, const Figures& start);

}  // namespace tributary::tuning
