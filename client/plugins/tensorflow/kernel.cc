#include "client/plugins/tensorflow/kernel.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "client/plugins/tensorflow/endings.h"

namespace tributary::tensorflow {
namespace {

std::atomic<tributary_comm*> used{nullptr};
std::atomic<int> used_ranks{1};

struct KernelArgument {
  std::int32_t value = 0;
};

struct DeleteTensor {
  void operator()(Tensor* tensor) const { api().DeleteTensor(tensor); }
};
struct DeleteStatus {
  void operator()(Status* status) const { api().DeleteStatus(status); }
};
using TensorPointer = std::unique_ptr<Tensor, DeleteTensor>;
using StatusPointer = std::unique_ptr<Status, DeleteStatus>;

/// One call under way: it holds both tensors until the library has ended with them.
struct UnderWay {
  KernelContext* context;
  std::function<void()> done;
  TensorPointer input;
  TensorPointer output;
  tributary_status status = TRIBUTARY_OK;
  std::string sentence;
};

int code_of(tributary_status status) {
  switch (status) {
    case TRIBUTARY_ERROR_BAD_ARGUMENT:
    case TRIBUTARY_ERROR_MISMATCH:
      return kInvalidArgument;
    case TRIBUTARY_ERROR_TIMED_OUT:
      return kDeadlineExceeded;
    default:
      return kAborted;
  }
}

void report(KernelContext* context, int code, const std::string& sentence) {
  const StatusPointer status(api().NewStatus());
  api().SetStatus(status.get(), code, ("tributary: " + sentence).c_str());
  api().OpKernelContext_Failure(context, status.get());
}

/// Ends a call on the thread of endings. TensorFlow may free the context as soon as `done` has run.
void end(void* raw) {
  const std::unique_ptr<UnderWay> call(static_cast<UnderWay*>(raw));
  if (call->status != TRIBUTARY_OK) report(call->context, code_of(call->status), call->sentence);
  call->input.reset();
  call->output.reset();
  call->done();
}

/// TensorFlow passes a pointer to its std::function, which lives only until the kernel's function returns. So the call
/// keeps a copy, in place of TF_RunAsyncOpKernelDoneCallback() with the pointer. TensorFlow's packages for Linux use
/// the same standard library as this one.
std::function<void()> copy_of(const Done* done) {
  return *reinterpret_cast<const std::function<void()>*>(done);
}

/// Runs on a thread of the library.
void when_done(void* raw, const tributary_outcome* outcome) {
  auto* const call = static_cast<UnderWay*>(raw);
  call->status = outcome->status;
  if (outcome->status != TRIBUTARY_OK) call->sentence = outcome->sentence;
  end_later(&end, call);
}

/// Gives the call to the library, which ends it. A communicator that was ended meanwhile, as by shutdown() or at the
/// process's end, takes no call; then this one ends at once, as its operator waits for `done`.
void hand_over(std::unique_ptr<UnderWay> call, tributary_request* request, tributary_comm* comm) {
  const tributary_status status = tributary_when_done(request, &when_done, call.get());
  UnderWay* const raw = call.release();
  if (status == TRIBUTARY_OK) return;  // when_done() owns the call, and may have ended it already
  raw->status = status;
  raw->sentence = tributary_last_error(comm);
  end_later(&end, raw);
}

/// Takes the input and makes the output. Returns false after a report.
bool prepare(UnderWay& under_way, const Collective collective, std::int32_t argument, Plan& plan) {
  const StatusPointer status(api().NewStatus());
  Tensor* input = nullptr;
  api().GetInput(under_way.context, 0, &input, status.get());
  under_way.input.reset(input);
  if (api().GetCode(status.get()) != 0) {
    api().OpKernelContext_Failure(under_way.context, status.get());
    return false;
  }
  Call call{.collective = collective,
            .type = api().TensorType(input),
            .dims = {},
            .bytes = api().TensorByteSize(input),
            .argument = argument};
  for (int index = 0; index < api().NumDims(input); ++index) call.dims.push_back(api().Dim(input, index));
  plan = plan_of(call, used_ranks.load());
  if (!plan.refusal.empty()) {
    report(under_way.context, kInvalidArgument, plan.refusal);
    return false;
  }
  under_way.output.reset(api().AllocateOutput(under_way.context, 0, call.type, plan.dims.data(),
                                              static_cast<int>(plan.dims.size()), plan.bytes, status.get()));
  if (api().GetCode(status.get()) == 0) return true;
  api().OpKernelContext_Failure(under_way.context, status.get());
  return false;
}

}  // namespace

void use(tributary_comm* comm, int ranks) {
  used_ranks = ranks;
  used = comm;
}

void* create_kernel(KernelConstruction* construction, const char* attribute) {
  auto argument = std::make_unique<KernelArgument>();
  if (attribute != nullptr) {
    const StatusPointer status(api().NewStatus());
    api().OpKernelConstruction_GetAttrInt32(construction, attribute, &argument->value, status.get());
    if (api().GetCode(status.get()) != 0) api().OpKernelConstruction_Failure(construction, status.get());
  }
  return argument.release();  // TensorFlow gives it back to destroy_kernel()
}

void destroy_kernel(void* kernel) {
  const std::unique_ptr<KernelArgument> owned(static_cast<KernelArgument*>(kernel));
}

void compute(Collective collective, void* kernel, KernelContext* context, Done* done) {
  auto call =
      std::make_unique<UnderWay>(UnderWay{.context = context, .done = copy_of(done), .input = {}, .output = {}});
  tributary_comm* const comm = used.load();
  const std::int32_t argument = static_cast<const KernelArgument*>(kernel)->value;
  Plan plan;
  if (comm == nullptr) {
    report(context, kFailedPrecondition, "call tributary.tensorflow.init() first");
  } else if (prepare(*call, collective, argument, plan)) {
    tributary_request* request = nullptr;
    const tributary_status status = start(collective, plan, argument, api().TensorData(call->input.get()),
                                          api().TensorData(call->output.get()), comm, &request);
    if (status == TRIBUTARY_OK) {
      hand_over(std::move(call), request, comm);
      return;
    }
    report(context, code_of(status), tributary_last_error(comm));
  }
  call.reset();
  api().RunAsyncOpKernelDoneCallback(done);
}

}  // namespace tributary::tensorflow
