#pragma once
// The status port of a process: a socket in a local folder, at which `tributary dump` reads the flight records of the
// process's communicators. Its own thread answers, so that it answers also while the job hangs.
//
// A client sends one line and gets one answer, then the connection ends:
//   status      one line for each communicator
//   dump        also the last operations of each
//   dump json   the same for programs
//   calls json  of each communicator the oldest operation that has not succeeded, and the last one, for programs
//   metrics json  figures of the process for metrics: see rank_figures.h
//   trace begin MILLISECONDS, trace json   record a trace of all communicators, and answer it: see rank_traces.h
//   late GROUP NUMBER   one line for each communicator of the group that has not called the operation with this number
// Only the user of the process and root get an answer.
#include <memory>
#include <string>

#include "client/operation/flight_record.h"

namespace tributary::client {

/// Keeps a record readable at the process's port as long as this object lives.
class ServedRecord {
 public:
  /// Opens the process's port if it is not open: the first communicator's folder counts. Errc::io says why there is no
  /// port.
  [[nodiscard]] static Result<std::unique_ptr<ServedRecord>> serve(const std::string& folder,
                                                                   std::shared_ptr<FlightRecord> record);
  ServedRecord(const ServedRecord&) = delete;
  ServedRecord& operator=(const ServedRecord&) = delete;
  ~ServedRecord();

 private:
  class Port;
  ServedRecord(std::shared_ptr<Port> port, std::shared_ptr<FlightRecord> record);
  const std::shared_ptr<Port> port_;
  const std::shared_ptr<FlightRecord> record_;
};

}  // namespace tributary::client
