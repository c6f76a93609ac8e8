#pragma once
// Waits for libtributary without stopping MPI. Another rank may need this rank's MPI before it makes its own call: a
// large MPI_Isend of this rank goes on only while this rank is in MPI.
#include <tributary/tributary.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace tributary::mpi {

/// Lets MPI make progress. Blocks for no other process.
void turn_mpi();

/// Waits for at most this time; negative: without a limit. Returns the outcome, and the request is freed; nullopt if the
/// operation has not ended.
[[nodiscard]] std::optional<tributary_status> wait_a_while(tributary_request* request, std::int64_t nanoseconds);

/// While it lives, MPI makes progress in this thread's blocking calls of libtributary. Other threads of this library make
/// such calls, too, and must not call MPI.
class TurningMpi {
 public:
  TurningMpi() noexcept;
  TurningMpi(const TurningMpi&) = delete;
  TurningMpi& operator=(const TurningMpi&) = delete;
  ~TurningMpi();
};
/// Lets the communicators that are made with this configuration turn MPI.
void turn_mpi_by(tributary_config& config);

/// Runs `work` on a thread of its own, and turns MPI until it has ended. `work` must make no call of MPI.
void run_and_turn_mpi(const std::function<void()>& work);

}  // namespace tributary::mpi
