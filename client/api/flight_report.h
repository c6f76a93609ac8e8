#pragma once
// The flight records of a process as text for people, and as JSON for programs.
#include <memory>
#include <span>
#include <string>

#include "client/operation/flight_record.h"

namespace tributary::client {

using FlightRecords = std::span<const std::shared_ptr<const FlightRecord>>;

/// Returns one line for each communicator: its rank, its number of calls, and its oldest open operation.
[[nodiscard]] std::string status_text(FlightRecords records);
/// Returns status_text(), with the operations of each communicator below its line.
[[nodiscard]] std::string flight_text(FlightRecords records);
/// Returns one JSON object. Its times are nanoseconds since 1970, so that the records of several processes compare.
[[nodiscard]] std::string flight_json(FlightRecords records);

/// Writes flight_json() of one record to a new file in this folder. Returns the file's path.
[[nodiscard]] Result<std::string> write_flight_file(const std::string& folder,
                                                    const std::shared_ptr<const FlightRecord>& record);

}  // namespace tributary::client
