#include "client/plugins/mpi/numerics.h"

#include <array>
#include <string>
#include <string_view>

#include "client/plugins/mpi/communicator.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/report.h"

namespace tributary::mpi {
namespace {

constexpr std::array kWords{"fast", "exact", "wide"};  // an attribute is the address of one of them
enum Answer : int { kNone = -1, kUnknown = static_cast<int>(kWords.size()) };

int numerics_key = MPI_KEYVAL_INVALID;

/// Returns the place of the value in kWords, or an Answer.
int read(MPI_Info info) {
  std::array<char, MPI_MAX_INFO_VAL + 1> text{};
  int found = 0;
  if (info == MPI_INFO_NULL ||
      PMPI_Info_get(info, kNumericsKey, MPI_MAX_INFO_VAL, text.data(), &found) != MPI_SUCCESS || found == 0) {
    return kNone;
  }
  for (std::size_t word = 0; word < kWords.size(); ++word) {
    if (std::string_view(text.data()) == kWords[word]) return static_cast<int>(word);
  }
  return kUnknown;
}

bool is_rank_0(MPI_Comm comm) {
  int rank = 0;
  return PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == 0;
}

}  // namespace

bool prepare_numerics() {
  return PMPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &numerics_key, nullptr) == MPI_SUCCESS;
}

const char* numerics_of(MPI_Comm comm) {
  void* attribute = nullptr;
  int found = 0;
  const bool known =
      PMPI_Comm_get_attr(comm, numerics_key, static_cast<void*>(&attribute), &found) == MPI_SUCCESS && found != 0;
  return known ? static_cast<const char*>(attribute) : nullptr;
}

void take_numerics(MPI_Comm comm, MPI_Info info) {
  if (job_settings() == nullptr || comm == MPI_COMM_NULL) return;
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0) return;
  const int answer = read(info);
  std::array<int, 2> most{answer, -answer};
  if (PMPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return;
  if (most[0] != -most[1] || most[0] == kUnknown) {
    if (is_rank_0(comm)) {
      say(std::string("info key ") + kNumericsKey + ": " +
          (most[0] != -most[1] ? "the ranks give different values" : "the value has no meaning") +
          "; nothing changes (allowed: fast, wide, exact)");
    }
    return;
  }
  if (answer == kNone) return;
  const char* const before = numerics_of(comm);
  const char* const word = kWords[static_cast<std::size_t>(answer)];
  if (before == word || PMPI_Comm_set_attr(comm, numerics_key, const_cast<char*>(word)) != MPI_SUCCESS) return;
  if (Communicator* const communicator = Communicator::of(comm)) communicator->renew();
}

void show_numerics(MPI_Comm comm, MPI_Info info) {
  const char* const word = job_settings() == nullptr || comm == MPI_COMM_NULL ? nullptr : numerics_of(comm);
  if (word != nullptr) PMPI_Info_set(info, kNumericsKey, word);
}

}  // namespace tributary::mpi
