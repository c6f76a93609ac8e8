#pragma once
// The text and the JSON of `tributary plan --budget`.
#include <string>

#include "client/cli/budget/budget.h"

namespace tributary::cli {

/// Returns sentences and tables; quantities have decimal units and four digits.
[[nodiscard]] std::string budget_text(const BudgetInput& input, const Budget& budget);
/// Returns one JSON object; quantities are in bytes, seconds and bits per second.
[[nodiscard]] std::string budget_json(const BudgetInput& input, const Budget& budget);

}  // namespace tributary::cli
