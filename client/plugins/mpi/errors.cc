#include "client/plugins/mpi/errors.h"

#include <map>
#include <mutex>

#include "client/plugins/mpi/report.h"

namespace tributary::mpi {

int code_of(tributary_status status, const std::string& sentence) {
  if (status == TRIBUTARY_OK) return MPI_SUCCESS;
  static std::mutex mutex;
  static std::map<tributary_status, int> codes;
  const std::lock_guard lock(mutex);
  auto found = codes.find(status);
  if (found == codes.end()) {
    // MPICH keeps the sentences only of codes whose class is a program's own.
    int of_class = MPI_ERR_OTHER;
    int code = MPI_ERR_OTHER;
    if (PMPI_Add_error_class(&of_class) != MPI_SUCCESS) return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(of_class, &code) != MPI_SUCCESS) return MPI_ERR_OTHER;
    found = codes.emplace(status, code).first;
  }
  const std::string text = std::string("Tributary: ") + tributary_status_string(status) + ": " + sentence;
  say(text);
  PMPI_Add_error_string(found->second, text.substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
  return found->second;
}

int told(int code, MPI_Comm comm) {
  if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace tributary::mpi
