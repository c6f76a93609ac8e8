#pragma once
// Collects the flight records of the processes whose status ports are in a folder.
#include <string>
#include <vector>

#include "client/cli/dump/records.h"

namespace tributary::cli {

struct Gathered {
  GroupRecords groups;
  std::vector<std::string> silent;  // sentences about ports that gave no record
};

/// Asks every port in the folder at the same time, and reads every file *.json that a failed communicator left there.
/// Errc::io: the folder cannot be read.
[[nodiscard]] Result<Gathered> gather(const std::string& folder);

}  // namespace tributary::cli
