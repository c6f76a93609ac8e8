#pragma once
// The text and the JSON of `tributary plan --budget`.
#include <string>

#include "client/cli/budget/budget.h"

namespace tributary::cli {

/// Sentences and tables; quantities in decimal units with four digits.
[[nodiscard]] std::string budget_text(const BudgetInput& input, const Budget& budget);
/// One JSON object; bytes, seconds and bits per second.
[[nodiscard]] std::string budget_json(const BudgetInput& input, const Budget& budget);

}  // namespace tributary::cli
