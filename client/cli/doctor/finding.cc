#include "client/cli/doctor/finding.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/colour.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli::doctor {
namespace {

std::string count_of(const Findings& findings, Level level) {
  return std::to_string(std::ranges::count(findings, level, &Finding::level)) + " " + to_string(level);
}

}  // namespace

const char* to_string(Level level) noexcept {
  switch (level) {
    case Level::good:
      return "good";
    case Level::warning:
      return "warning";
    case Level::bad:
      return "bad";
    case Level::unknown:
      return "unknown";
  }
  return "?";
}

bool all_good(const Findings& findings) noexcept {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::bad; });
}

void append(Findings& findings, Findings more) {
  std::ranges::move(more, std::back_inserter(findings));
}

std::string to_text(const Findings& findings, bool colour) {
  Table table({"PART", "WHAT", "IS", "FOUND"});
  for (const Finding& f : findings) {
    table.add({f.part, f.what, to_string(f.level), f.found});
    if (!f.why.empty()) table.add({"", "", "", "why:  " + f.why});
    if (!f.mend.empty()) table.add({"", "", "", "mend: " + f.mend});
  }
  return table.text(colour) + count_of(findings, Level::good) + ", " + count_of(findings, Level::warning) + ", " +
         count_of(findings, Level::bad) + ", " + count_of(findings, Level::unknown) + ".\n";
}

std::string to_document(const Findings& findings, OutputForm form) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& f : findings) {
    list.push_back({{"part", f.part},
                    {"what", f.what},
                    {"level", to_string(f.level)},
                    {"found", f.found},
                    {"why", f.why},
                    {"mend", f.mend}});
  }
  const nlohmann::json all = {{"good", all_good(findings)}, {"findings", std::move(list)}};
  return document_text(all, form);
}

int print(const Findings& findings, OutputForm form) {
  const std::string text = is_document(form) ? to_document(findings, form) : to_text(findings, output_takes_colour());
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) return kExitFailed;
  return all_good(findings) ? kExitGood : kExitFailed;
}

}  // namespace tributary::cli::doctor
