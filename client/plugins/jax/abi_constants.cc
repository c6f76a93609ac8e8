// The constants that MPItrampoline looks up and copies when it loads the library.
#include <cstdint>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/unused_constants.h"

extern "C" {

// C++ gives constants internal linkage unless a declaration says otherwise.
#define CONSTANT(type, name, value) \
  extern const type MPIABI_##name;  \
  const type MPIABI_##name = (value)

extern const int mpiabi_version_major, mpiabi_version_minor, mpiabi_version_patch;
extern const int mpiwrapper_version_major, mpiwrapper_version_minor, mpiwrapper_version_patch;
const int mpiabi_version_major = 2;
const int mpiabi_version_minor = 9;
const int mpiabi_version_patch = 0;
const int mpiwrapper_version_major = 2;
const int mpiwrapper_version_minor = 9;
const int mpiwrapper_version_patch = 0;
// The library has nothing for Fortran.
void mpiwrapper_export_fortran_constants_() {}

CONSTANT(int, SUCCESS, tributary::jax::kSuccess);
CONSTANT(int, UNDEFINED, tributary::jax::kUndefined);
CONSTANT(int, ANY_SOURCE, -1);
CONSTANT(int, ANY_TAG, -1);
CONSTANT(int, PROC_NULL, -2);
CONSTANT(int, ROOT, -3);
CONSTANT(int, KEYVAL_INVALID, -4);
CONSTANT(int, BSEND_OVERHEAD, 0);
CONSTANT(int, THREAD_SINGLE, 0);
CONSTANT(int, THREAD_FUNNELED, 1);
CONSTANT(int, THREAD_SERIALIZED, 2);
CONSTANT(int, THREAD_MULTIPLE, tributary::jax::kThreadMultiple);
CONSTANT(int, ERR_COMM, tributary::jax::kErrorComm);
CONSTANT(int, ERR_COUNT, tributary::jax::kErrorCount);
CONSTANT(int, ERR_TYPE, tributary::jax::kErrorType);
CONSTANT(int, ERR_OP, tributary::jax::kErrorOp);
CONSTANT(int, ERR_ARG, tributary::jax::kErrorArgument);
CONSTANT(int, ERR_OTHER, tributary::jax::kErrorOther);
CONSTANT(int, ERR_UNSUPPORTED_OPERATION, tributary::jax::kErrorUnsupported);
CONSTANT(int, ERR_LASTCODE, 1000);

CONSTANT(tributary::jax::Comm, COMM_NULL, tributary::jax::kCommNull);
CONSTANT(tributary::jax::Comm, COMM_WORLD, tributary::jax::kCommWorld);
CONSTANT(tributary::jax::Comm, COMM_SELF, tributary::jax::kCommSelf);
CONSTANT(tributary::jax::Request, REQUEST_NULL, tributary::jax::kRequestNull);

CONSTANT(tributary::jax::Datatype, DATATYPE_NULL, tributary::jax::kTypeNull);
CONSTANT(tributary::jax::Datatype, BYTE, tributary::jax::kByte);
CONSTANT(tributary::jax::Datatype, INT8_T, tributary::jax::kInt8);
CONSTANT(tributary::jax::Datatype, UINT8_T, tributary::jax::kUint8);
CONSTANT(tributary::jax::Datatype, INT16_T, tributary::jax::kInt16);
CONSTANT(tributary::jax::Datatype, UINT16_T, tributary::jax::kUint16);
CONSTANT(tributary::jax::Datatype, INT32_T, tributary::jax::kInt32);
CONSTANT(tributary::jax::Datatype, UINT32_T, tributary::jax::kUint32);
CONSTANT(tributary::jax::Datatype, INT64_T, tributary::jax::kInt64);
CONSTANT(tributary::jax::Datatype, UINT64_T, tributary::jax::kUint64);
CONSTANT(tributary::jax::Datatype, FLOAT, tributary::jax::kFloat);
CONSTANT(tributary::jax::Datatype, DOUBLE, tributary::jax::kDouble);
CONSTANT(tributary::jax::Datatype, C_COMPLEX, tributary::jax::kComplex);
CONSTANT(tributary::jax::Datatype, C_FLOAT_COMPLEX, tributary::jax::kComplex);
CONSTANT(tributary::jax::Datatype, C_DOUBLE_COMPLEX, tributary::jax::kDoubleComplex);

CONSTANT(tributary::jax::Op, OP_NULL, tributary::jax::kOpNull);
CONSTANT(tributary::jax::Op, SUM, tributary::jax::kSum);
CONSTANT(tributary::jax::Op, PROD, tributary::jax::kProd);
CONSTANT(tributary::jax::Op, MIN, tributary::jax::kMin);
CONSTANT(tributary::jax::Op, MAX, tributary::jax::kMax);

CONSTANT(std::int64_t, DISPLACEMENT_CURRENT, -1);
extern const std::uintptr_t MPIABI_IN_PLACE;
const std::uintptr_t MPIABI_IN_PLACE = 1;

// The counter makes the numbers of one list different from each other.
#define UNUSED_ERROR(name) CONSTANT(int, name, tributary::jax::kErrorUnusedFirst + __COUNTER__);
#define UNUSED_NUMBER(name) CONSTANT(int, name, 1 + __COUNTER__);
#define UNUSED_TYPE(name) CONSTANT(tributary::jax::Datatype, name, tributary::jax::kTypeUnknownFirst + __COUNTER__);
#define UNUSED_OP(name) CONSTANT(tributary::jax::Op, name, tributary::jax::kOpUnknownFirst + __COUNTER__);
#define UNUSED_HANDLE(name) CONSTANT(std::uintptr_t, name, 1 + __COUNTER__);
#define NULL_HANDLE(name) CONSTANT(std::uintptr_t, name, 0);

TRIBUTARY_JAX_UNUSED_ERRORS(UNUSED_ERROR)
TRIBUTARY_JAX_UNUSED_NUMBERS(UNUSED_NUMBER)
TRIBUTARY_JAX_UNUSED_TYPES(UNUSED_TYPE)
TRIBUTARY_JAX_UNUSED_OPS(UNUSED_OP)
TRIBUTARY_JAX_UNUSED_HANDLES(UNUSED_HANDLE)
TRIBUTARY_JAX_NULL_HANDLES(NULL_HANDLE)
// Pointers, such as STATUS_IGNORE. A pointer has the size of a handle.
TRIBUTARY_JAX_NULL_POINTERS(NULL_HANDLE)
}
