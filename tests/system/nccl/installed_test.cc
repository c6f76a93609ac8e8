// Facts about NCCL itself that need no GPU: its numbers are the same as in the plugin, and the library tells its
// version. NCCL loads no plugin before it has found a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/plugins/nccl/abi/base.h"

#ifdef TRIBUTARY_HAVE_NCCL_HEADER
#include <nccl.h>
#endif

namespace tributary::nccl {
namespace {

#ifdef TRIBUTARY_HAVE_NCCL_HEADER
template <class Theirs, class Ours>
constexpr bool same(Theirs theirs, Ours ours) {
  return static_cast<int>(theirs) == static_cast<int>(ours);
}

static_assert(same(ncclSuccess, abi::Result::success) &&
              same(ncclUnhandledCudaError, abi::Result::unhandled_cuda_error) &&
              same(ncclSystemError, abi::Result::system_error) &&
              same(ncclInternalError, abi::Result::internal_error) &&
              same(ncclInvalidArgument, abi::Result::invalid_argument) &&
              same(ncclInvalidUsage, abi::Result::invalid_usage) && same(ncclRemoteError, abi::Result::remote_error));
static_assert(same(ncclInt8, abi::DataType::int8) && same(ncclUint8, abi::DataType::uint8) &&
              same(ncclInt32, abi::DataType::int32) && same(ncclUint32, abi::DataType::uint32) &&
              same(ncclInt64, abi::DataType::int64) && same(ncclUint64, abi::DataType::uint64) &&
              same(ncclFloat16, abi::DataType::float16) && same(ncclFloat32, abi::DataType::float32) &&
              same(ncclFloat64, abi::DataType::float64) && same(ncclBfloat16, abi::DataType::bfloat16));
#if NCCL_VERSION_CODE >= 22400
static_assert(same(ncclFloat8e4m3, abi::DataType::float8_e4m3) && same(ncclFloat8e5m2, abi::DataType::float8_e5m2) &&
              same(ncclNumTypes, abi::kDataTypes));
#endif
static_assert(same(ncclSum, abi::RedOp::sum) && same(ncclProd, abi::RedOp::prod) && same(ncclMax, abi::RedOp::max) &&
              same(ncclMin, abi::RedOp::min) && same(ncclAvg, abi::RedOp::avg) && same(ncclNumOps, abi::kRedOps));

TEST(InstalledNccl, HasTheNumbersThatThePluginWasWrittenFrom) {
  std::printf("compiled against nccl.h of %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
}
#else
TEST(InstalledNccl, HasTheNumbersThatThePluginWasWrittenFrom) {
  GTEST_SKIP() << "no nccl.h, or no CUDA headers, on this machine";
}
#endif

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};

TEST(InstalledNccl, SaysItsVersion) {
  const std::unique_ptr<void, CloseLibrary> library(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL));
  if (!library) GTEST_SKIP() << "no libnccl.so.2 on this machine: " << dlerror();
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library.get(), "ncclGetVersion"));
  ASSERT_NE(get_version, nullptr);
  int version = 0;
  ASSERT_EQ(get_version(&version), 0);
  std::printf("libnccl.so.2 is %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  EXPECT_GE(version, 21800) << "the plugin has tables from 2.18 on";
}

}  // namespace
}  // namespace tributary::nccl
