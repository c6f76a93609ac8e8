#include "client/plugins/mpi/job.h"

#include <array>
#include <atomic>
#include <sstream>
#include <string>

#include "client/plugins/mpi/communicator.h"
#include "client/plugins/mpi/numerics.h"
#include "client/plugins/mpi/report.h"

namespace tributary::mpi {
namespace {

#ifdef OPEN_MPI
constexpr const char* kBuiltFor = "Open MPI";
#else
constexpr const char* kBuiltFor = "MPICH";
#endif

Settings settings;
std::atomic<const Settings*> in_use{nullptr};

/// Returns true if the process has the MPI that this library is built for.
bool is_right_mpi() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  PMPI_Get_library_version(text.data(), &length);
  return std::string(text.data()).contains(kBuiltFor);
}

void tell_report() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::istringstream lines(report_text());
  for (std::string line; std::getline(lines, line);) say("rank 0: " + line);
}

}  // namespace

void begin_job() {
  if (!is_right_mpi()) {
    say(std::string("this process does not use ") + kBuiltFor +
        ", which this library is built for: all calls go by MPI; preload the library of the other MPI");
    return;
  }
  std::string mistake;
  settings = settings_of_environment(mistake);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!mistake.empty() && rank == 0) say(mistake);
  std::array<unsigned long long, 3> of_rank_0{settings.bytes_min, settings.measured ? 1U : 0U, settings.off ? 1U : 0U};
  const auto numbers = static_cast<int>(of_rank_0.size());
  if (PMPI_Bcast(of_rank_0.data(), numbers, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD) != MPI_SUCCESS) return;
  settings.bytes_min = of_rank_0[0];
  settings.measured = of_rank_0[1] != 0;
  settings.off = of_rank_0[2] != 0;
  if (settings.off) note_reason("TRIBUTARY_MPI_MIN_BYTES=off");
  if (!settings.off && Communicator::prepare() && prepare_numerics())
    in_use.store(&settings, std::memory_order_release);
}

void end_job() {
  if (in_use.exchange(nullptr) != nullptr) Communicator::end_all();
  if (settings.report) tell_report();
}

const Settings* job_settings() noexcept {
  return in_use.load(std::memory_order_acquire);  // pairs with begin_job()
}

}  // namespace tributary::mpi
