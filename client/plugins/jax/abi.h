#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The part of MPItrampoline's binary interface (version 2.9) that jaxlib uses: the types of its calls, and the values
// of the constants that the library's own code reads. abi_constants.cc exports all constants.
namespace tributary::jax {

using Comm = std::uintptr_t;
using Datatype = std::uintptr_t;
using Op = std::uintptr_t;
using Request = std::uintptr_t;

struct MessageStatus {
  std::array<std::byte, 24> implementation;
  int source;
  int tag;
  int error;
};
static_assert(sizeof(MessageStatus) == 36 || sizeof(MessageStatus) == 40);

inline constexpr int kSuccess = 0;
inline constexpr int kUndefined = -32766;
inline constexpr int kThreadMultiple = 3;
inline constexpr std::size_t kErrorStringBytes = 1024;
inline constexpr std::size_t kLibraryVersionBytes = 8192;

inline constexpr Comm kCommNull = 0;
inline constexpr Comm kCommWorld = 1;
inline constexpr Comm kCommSelf = 2;
inline constexpr Comm kCommFirst = 3;  // the first communicator that a split makes
inline constexpr Request kRequestNull = 0;

enum KnownType : Datatype {
  kTypeNull = 0,
  kByte,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kComplex,
  kDoubleComplex,
  kTypeUnknownFirst = 100
};

enum KnownOp : Op { kOpNull = 0, kSum, kProd, kMin, kMax, kOpUnknownFirst = 100 };

// Error classes; MPI_Error_string has the sentence of the thread's last error.
enum ErrorClass : int {
  kErrorComm = 1,
  kErrorCount,
  kErrorType,
  kErrorOp,
  kErrorArgument,
  kErrorOther,
  kErrorUnsupported,
  kErrorUnusedFirst
};

}  // namespace tributary::jax
