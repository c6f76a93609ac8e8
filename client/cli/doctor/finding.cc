#include "client/cli/doctor/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/table.h"

namespace tributary::cli::doctor {

const char* to_string(Level level) noexcept {
  switch (level) {
    case Level::good:
      return "good";
    case Level::note:
      return "note";
    case Level::mend:
      return "mend";
  }
  return "?";
}

bool all_good(const Findings& findings) noexcept {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::mend; });
}

std::string to_text(const Findings& findings) {
  Table table({"PART", "WHAT", "IS", "FOUND"});
  for (const Finding& f : findings) {
    table.add({f.part, f.what, to_string(f.level), f.says});
    if (!f.advice.empty()) table.add({"", "", "", "-> " + f.advice});
  }
  const auto count = std::ranges::count(findings, Level::mend, &Finding::level);
  return table.text() + (count == 0 ? "Nothing to mend.\n" : std::to_string(count) + " to mend.\n");
}

std::string to_json(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& f : findings) {
    list.push_back(
        {{"part", f.part}, {"what", f.what}, {"level", to_string(f.level)}, {"says", f.says}, {"advice", f.advice}});
  }
  const nlohmann::json all = {{"good", all_good(findings)}, {"findings", std::move(list)}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tributary::cli::doctor
