// RCCL loads the same tables as NCCL. Its 8-bit floats may have another format than NCCL's floats, so the plugin must
// not sum them. The order of the cases matters: after the plugin has found its loader, the loader does not change.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "client/plugins/nccl/collective/collnet.h"
#include "client/plugins/nccl/loader.h"

namespace tributary::nccl {
namespace {

void own_logger(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}

bool supported(abi::DataType type) {
  int answer = -1;
  EXPECT_EQ(collnet::reduce_support(type, abi::RedOp::sum, &answer), abi::Result::success);
  return answer == 1;
}

abi::Logger logger_of(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  return reinterpret_cast<abi::Logger>(dlsym(handle, "fake_logger"));
}

void expect_no_fp8_after_init_by(const char* library) {
  const abi::Logger logger = logger_of(library);
  ASSERT_NE(logger, nullptr) << dlerror();
  ASSERT_EQ(collnet::init(11, nullptr, logger), abi::Result::success);
  EXPECT_TRUE(loaded_by_rccl());
  EXPECT_FALSE(supported(abi::DataType::float8_e4m3));
  EXPECT_FALSE(supported(abi::DataType::float8_e5m2));
  EXPECT_TRUE(supported(abi::DataType::bfloat16));
  EXPECT_TRUE(supported(abi::DataType::float32));
}

TEST(Rccl, NcclGetsItsEightBitFloatsSummed) {
  ASSERT_EQ(collnet::init(11, nullptr, own_logger), abi::Result::success);
  EXPECT_FALSE(loaded_by_rccl());
  EXPECT_TRUE(supported(abi::DataType::float8_e4m3));
  EXPECT_TRUE(supported(abi::DataType::float8_e5m2));
}

TEST(Rccl, IsKnownByItsName) {
  EXPECT_EXIT(
      {
        expect_no_fp8_after_init_by(TRIBUTARY_FAKE_RCCL);
        _exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Rccl, IsKnownByACallOfItsOwn) {
  EXPECT_EXIT(
      {
        expect_no_fp8_after_init_by(TRIBUTARY_FAKE_HIDDEN);
        _exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tributary::nccl
