#pragma once
// The flight records of a process as text for people, and as JSON for programs.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "client/operation/flight_record.h"

namespace tributary::client {

using FlightRecords = std::span<const std::shared_ptr<const FlightRecord>>;

[[nodiscard]] std::string_view word_of(FlightPath path) noexcept;
[[nodiscard]] std::string_view word_of(FlightOutcome outcome) noexcept;

/// Returns one line for each communicator: its rank, its number of calls, and its oldest open operation.
[[nodiscard]] std::string status_text(FlightRecords records);
/// Returns status_text(), with the operations of each communicator below its line.
[[nodiscard]] std::string flight_text(FlightRecords records);
/// Returns one JSON object. Its times are nanoseconds since 1970, so that the records of several processes compare.
[[nodiscard]] std::string flight_json(FlightRecords records);
/// Returns flight_json() with only two operations of each communicator: the oldest one that has not succeeded, and the
/// last one. They suffice to find out which ranks have not called the operation that others wait for.
[[nodiscard]] std::string calls_json(FlightRecords records);
/// Returns a line for each communicator of this group that has not called the operation with this number.
[[nodiscard]] std::string late_text(FlightRecords records, std::string_view group, std::uint64_t number);

/// Writes flight_json() of one record to a new file in this folder. Returns the file's path.
[[nodiscard]] Result<std::string> write_flight_file(const std::string& folder,
                                                    const std::shared_ptr<const FlightRecord>& record);

}  // namespace tributary::client
