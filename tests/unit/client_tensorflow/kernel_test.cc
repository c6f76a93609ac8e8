// The operators' kernel with a fake TensorFlow, and with a library whose communicator ends at a bad moment.
#include "client/plugins/tensorflow/kernel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>

namespace tributary::tensorflow {

struct Status {
  int code = 0;
  std::string text;
};
struct Tensor {
  float value = 0;
};
struct KernelContext {
  Status failure;
};

namespace {

Api fake() {
  Api table{};
  table.NewStatus = [] { return new Status; };
  table.DeleteStatus = [](Status* status) { delete status; };
  table.SetStatus = [](Status* status, int code, const char* text) { *status = {code, text}; };
  table.GetCode = [](const Status* status) { return status->code; };
  table.OpKernelContext_Failure = [](KernelContext* context, Status* status) { context->failure = *status; };
  table.GetInput = [](KernelContext*, int, Tensor** tensor, Status*) { *tensor = new Tensor; };
  table.AllocateOutput = [](KernelContext*, int, int, const std::int64_t*, int, std::size_t, Status*) {
    return new Tensor;
  };
  table.DeleteTensor = [](Tensor* tensor) { delete tensor; };
  table.TensorType = [](const Tensor*) { return static_cast<int>(kFloat); };
  table.NumDims = [](const Tensor*) { return 1; };
  table.Dim = [](const Tensor*, int) { return std::int64_t{1}; };
  table.TensorByteSize = [](const Tensor*) { return sizeof(float); };
  table.TensorData = [](const Tensor* tensor) -> void* { return &const_cast<Tensor*>(tensor)->value; };
  return table;
}

}  // namespace

const Api& api() {
  static const Api table = fake();
  return table;
}

namespace {

TEST(TensorFlowKernel, ACallEndsThoughItsCommunicatorHasEndedSinceItsStart) {
  int any = 0;
  use(reinterpret_cast<tributary_comm*>(&any), 1);
  void* const kernel = create_kernel(nullptr, nullptr);
  KernelContext context;
  std::promise<void> ended;
  auto end = ended.get_future();
  {
    std::function<void()> done = [&] { ended.set_value(); };
    compute(Collective::all_reduce, kernel, &context, reinterpret_cast<Done*>(&done));
  }
  ASSERT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "the operator waits for ever";
  EXPECT_EQ(context.failure.code, kInvalidArgument);
  EXPECT_EQ(context.failure.text, "tributary: it has ended");
  destroy_kernel(kernel);
  use(nullptr, 1);
}

}  // namespace
}  // namespace tributary::tensorflow

// The library: it takes the call, and knows nothing of it afterwards.
tributary_status tributary_all_reduce(const void*, void*, std::size_t, tributary_dtype, tributary_op, tributary_comm*,
                                      tributary_request**) {
  return TRIBUTARY_OK;
}
tributary_status tributary_when_done(tributary_request*, void (*)(void*, const tributary_outcome*), void*) {
  return TRIBUTARY_ERROR_BAD_ARGUMENT;
}
const char* tributary_last_error(const tributary_comm*) {
  return "it has ended";
}
