// Loads libtributary-jax.so by its path, as MPItrampoline does in JAX's process.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/unknown_calls.h"
#include "client/plugins/jax/unused_constants.h"
#include "tributary/tributary.h"

namespace tributary::jax {
namespace {

class JaxLibrary : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(library_, nullptr) << dlerror(); }

  template <class T>
  T* symbol(const std::string& name) {
    void* const found = dlsym(library_, name.c_str());
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<T*>(found);
  }

  std::string error_of(int code) {
    std::array<char, kErrorStringBytes> text{};
    int length = 0;
    symbol<int(int, char*, int*)>("MPIABI_Error_string")(code, text.data(), &length);
    EXPECT_EQ(std::string(text.data()).size(), static_cast<std::size_t>(length));
    return text.data();
  }

  void* const library_ = dlopen(JAX_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
};

#define NAME(name) #name,

// MPItrampoline ends the process if one symbol is missing. MPI 3.1 has these numbers of names.
constexpr const char* kUnknownCalls[] = {TRIBUTARY_JAX_UNKNOWN_CALLS(NAME)};
static_assert(std::size(kUnknownCalls) == 324);
constexpr const char* kUnknownValues[] = {TRIBUTARY_JAX_UNKNOWN_VALUES(NAME)};
static_assert(std::size(kUnknownValues) == 22);
constexpr const char* kUnused[] = {TRIBUTARY_JAX_UNUSED_ERRORS(NAME) TRIBUTARY_JAX_UNUSED_NUMBERS(NAME)
                                       TRIBUTARY_JAX_UNUSED_TYPES(NAME) TRIBUTARY_JAX_UNUSED_OPS(NAME)
                                           TRIBUTARY_JAX_UNUSED_HANDLES(NAME) TRIBUTARY_JAX_NULL_HANDLES(NAME)
                                               TRIBUTARY_JAX_NULL_POINTERS(NAME)};
static_assert(std::size(kUnused) == 214);

TEST_F(JaxLibrary, EveryUnknownCallEndsWithAnErrorThatNamesIt) {
  for (const std::string name : {TRIBUTARY_JAX_UNKNOWN_CALLS(NAME)}) {
    const int code = symbol<int()>("MPIABI_" + name)();
    EXPECT_NE(code, kSuccess) << name;
    EXPECT_EQ(error_of(code).rfind("MPI_" + name + ": ", 0), 0U) << error_of(code);
  }
}

TEST_F(JaxLibrary, ConstantsOfOneListDiffer) {
  std::set<int> numbers;
  for (const std::string name : {TRIBUTARY_JAX_UNUSED_ERRORS(NAME)}) {
    EXPECT_TRUE(numbers.insert(*symbol<const int>("MPIABI_" + name)).second) << name;
  }
  EXPECT_EQ(numbers.count(kSuccess), 0U);
  std::set<Datatype> types{kTypeNull, kByte, kDoubleComplex};
  for (const std::string name : {TRIBUTARY_JAX_UNUSED_TYPES(NAME)}) {
    EXPECT_TRUE(types.insert(*symbol<const Datatype>("MPIABI_" + name)).second) << name;
  }
}

TEST_F(JaxLibrary, AnyThreadMayMakeCommunicators) {
  int flag = 0;
  EXPECT_EQ(symbol<int(int*)>("MPIABI_Is_thread_main")(&flag), kSuccess);
  EXPECT_EQ(flag, 1);
}

// One test, because a process has one job: its calls before the start, between, and after the end.
TEST_F(JaxLibrary, CallsBeforeTheStartAndAfterTheEndAreErrorsAndSmallIntegersKeepTheirWidth) {
  const auto all_reduce = symbol<int(const void*, void*, int, Datatype, Op, Comm)>("MPIABI_Allreduce");
  const std::array<std::int16_t, 3> values{-32768, 7, 32767};
  std::array<std::int16_t, 3> result{};

  int code = symbol<int(int*, char***, int, int*)>("MPIABI_Init_thread")(nullptr, nullptr, 1, &code);
  EXPECT_NE(code, kSuccess);
  code = all_reduce(values.data(), result.data(), 3, kInt16, kSum, kCommWorld);
  EXPECT_NE(code, kSuccess);
  EXPECT_EQ(error_of(code), "MPI_Allreduce: call tributary.jax.initialize() before the first use of JAX's devices");

  std::array<unsigned char, sizeof(tributary_unique_id)> id{};
  std::array<char, 2048> error{};
  ASSERT_EQ(symbol<int(unsigned char*, char*)>("tributary_jax_unique_id")(id.data(), error.data()), 0) << error.data();
  const auto start = symbol<int(int, int, const unsigned char*, long long, char*)>("tributary_jax_start");
  ASSERT_EQ(start(0, 1, id.data(), 0, error.data()), 0) << error.data();
  EXPECT_NE(start(0, 1, id.data(), 0, error.data()), 0);
  EXPECT_STREQ(error.data(), "the job of this process has started already");
  EXPECT_EQ(all_reduce(values.data(), result.data(), 3, kInt16, kSum, kCommWorld), kSuccess);
  EXPECT_EQ(result, values);
  EXPECT_EQ(all_reduce(values.data(), result.data(), 1, kComplex, kProd, kCommWorld), kErrorOp);
  EXPECT_EQ(all_reduce(values.data(), result.data(), -1, kInt16, kSum, kCommWorld), kErrorCount);
  EXPECT_EQ(all_reduce(values.data(), result.data(), 3, kTypeUnknownFirst, kSum, kCommWorld), kErrorType);

  // XLA frees its communicators while the process ends, after MPI_Finalize.
  EXPECT_EQ(symbol<int()>("MPIABI_Finalize")(), kSuccess);
  Comm comm = kCommFirst;
  EXPECT_EQ(symbol<int(Comm*)>("MPIABI_Comm_free")(&comm), kSuccess);
  EXPECT_EQ(comm, kCommNull);
  EXPECT_EQ(symbol<int()>("MPIABI_Finalize")(), kSuccess);
  code = all_reduce(values.data(), result.data(), 3, kInt16, kSum, kCommWorld);
  EXPECT_EQ(error_of(code), "MPI_Allreduce: MPI_Finalize has ended all communicators");
}

}  // namespace
}  // namespace tributary::jax
