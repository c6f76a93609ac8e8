#pragma once
// Collects the flight records of the processes whose status ports are in a folder.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/dump/records.h"

namespace tributary::cli {

struct Gathered {
  GroupRecords groups;
  std::vector<std::string> silent;  // sentences about ports that gave no record
};

enum class Question : std::uint8_t {
  whole,  // all operations of the records
  calls,  // the oldest operation that has not succeeded, and the last one: enough for the verdict
};

/// Asks every port in the folder for its record, and saves each answer as a file for gather() in the folder `into`, which
/// is made if it is missing. Returns the number of files. Errc::io: a folder cannot be read, or a file not be written.
/// `silent` gets the ports that gave no record.
[[nodiscard]] Result<std::size_t> save_records(const std::string& folder, const std::string& into,
                                               std::vector<std::string>& silent);

/// Asks every port in the folder at the same time, and reads every file *.json that a failed communicator left there.
/// Errc::io: the folder cannot be read.
[[nodiscard]] Result<Gathered> gather(const std::string& folder, Question question);

}  // namespace tributary::cli
