#include "client/cli/tuning/explain_codes.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

nlohmann::ordered_json to_json(const ReasonRow& row) {
  return {{"code", row.code}, {"kind", to_string(row.kind)}, {"meaning", row.meaning}, {"remedy", row.remedy}};
}

}  // namespace

int list_codes(bool json) {
  if (json) {
    nlohmann::ordered_json all = {{"codes", nlohmann::ordered_json::array()}};
    for (const ReasonRow& row : kReasons) all["codes"].push_back(to_json(row));
    std::puts(all.dump(1).c_str());
    return kExitGood;
  }
  Table table({"CODE", "KIND", "MEANING"});
  for (const ReasonRow& row : kReasons)
    table.add({std::string(row.code), std::string(to_string(row.kind)), std::string(row.meaning)});
  std::fputs(table.text().c_str(), stdout);
  return kExitGood;
}

int explain_code(Reason reason, bool json) {
  const ReasonRow& row = row_of(reason);
  if (json) {
    std::puts(to_json(row).dump(1).c_str());
    return kExitGood;
  }
  std::printf("%s (%s): %s\n", row.code.data(), to_string(row.kind).data(), row.meaning.data());
  if (!row.remedy.empty()) std::printf("what to do: %s\n", row.remedy.data());
  return kExitGood;
}

}  // namespace tributary::cli
