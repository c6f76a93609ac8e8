// The calls that XLA does not make: each ends with an error that names it.
#include <cstdint>
#include <cstdio>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/errors.h"
#include "client/plugins/jax/unknown_calls.h"

namespace tributary::jax {
namespace {

int unknown_call(const char* call) {
  return fail(kErrorUnsupported, call,
              "libtributary-jax.so has only the calls of MPI that JAX makes, and not this one");
}

// The call has no error code, so standard error has the sentence.
std::uintptr_t unknown_value(const char* call) {
  unknown_call(call);
  std::fprintf(stderr, "tributary-jax: %s\n", last_sentence());
  return 0;
}

}  // namespace
}  // namespace tributary::jax

// The callers pass arguments, which the functions leave alone: in the calling conventions of C the caller removes them.
extern "C" {

#define UNKNOWN_CALL(name)                             \
  int MPIABI_##name() {                                \
    return tributary::jax::unknown_call("MPI_" #name); \
  }
#define UNKNOWN_VALUE(name)                             \
  std::uintptr_t MPIABI_##name() {                      \
    return tributary::jax::unknown_value("MPI_" #name); \
  }

TRIBUTARY_JAX_UNKNOWN_CALLS(UNKNOWN_CALL)
TRIBUTARY_JAX_UNKNOWN_VALUES(UNKNOWN_VALUE)

// Extensions that ask for the kinds of memory: the library uses only host memory.
int MPIXABI_Query_cuda_support() {
  return 0;
}
int MPIXABI_Query_hip_support() {
  return 0;
}
int MPIXABI_Query_ze_support() {
  return 0;
}
}
