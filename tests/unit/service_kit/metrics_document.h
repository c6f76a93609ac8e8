#pragma once
// Compares a daemon's metrics with their table in docs/operations/metrics.md.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "service-kit/metric_page.h"

namespace tributary::service {

/// Expects that the document has the table of the daemon's metrics, which begins with the row that names their prefix.
inline void expect_documented(const MetricPage& page, const char* document) {
  const std::string table = page.table();
  const std::string first_row = table.substr(0, table.find('\n'));
  std::string documented;
  std::ifstream file(document);
  ASSERT_TRUE(file) << document << " cannot be read";
  for (std::string line; std::getline(file, line);) {
    if (line == first_row || (!documented.empty() && line.starts_with('|'))) {
      documented += line + "\n";
    } else if (!documented.empty()) {
      break;
    }
  }
  EXPECT_TRUE(documented == table)
      << document << " differs from the daemon. Write this table there, in place of the one that begins with\n"
      << first_row << "\n\n"
      << table;
}

}  // namespace tributary::service
