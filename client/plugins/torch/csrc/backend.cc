#include "backend.h"

#include <pthread.h>

#include <algorithm>

#include "error.h"

namespace tributary::torch {
namespace {

constexpr const char* kClosed = "tributary: the process group was shut down or aborted";

constexpr const char* kForked =
    "tributary: this process was forked after the process group was made; a child can only use groups of its own";
constexpr auto kGrace = std::chrono::milliseconds(500);

std::mutex registry_mutex;
std::vector<Backend*> registry;  // in the order in which the groups were made; the order is the same on every rank

// Releases the lock on both sides of fork().
void keep_registry_over_forks() {
  static const int registered =
      pthread_atfork([] { registry_mutex.lock(); }, [] { registry_mutex.unlock(); }, [] { registry_mutex.unlock(); });
  static_cast<void>(registered);
}

at::Device device_of(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second, const char* what) {
  std::optional<at::Device> device;
  for (const auto* tensors : {&first, &second}) {
    for (const at::Tensor& tensor : *tensors) {
      TORCH_CHECK(tensor.layout() == at::kStrided, what, " takes dense tensors; call to_dense() on sparse ones first");
      TORCH_CHECK(!device || *device == tensor.device(), what, " takes tensors of one device; it got ", *device,
                  " and ", tensor.device());
      device = tensor.device();
    }
  }
  return device.value_or(at::kCPU);
}

}  // namespace

Backend::Backend(tributary_comm* comm, int rank, int size) : c10d::Backend(rank, size), communicator_(comm) {
  keep_registry_over_forks();
  std::lock_guard lock(registry_mutex);
  registry.push_back(this);
}

Backend::~Backend() {
  {
    std::lock_guard lock(registry_mutex);
    registry.erase(std::remove(registry.begin(), registry.end(), this), registry.end());
  }
  shutdown();
}

std::uint64_t Backend::getSequenceNumberForGroup() {
  if (!made_here_) C10_THROW_ERROR(DistBackendError, kForked);
  std::lock_guard lock(order_);
  return sequence_;
}

Operation Backend::operation(c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
                             std::vector<at::Tensor> outputs) {
  const at::Device device = device_of(inputs, outputs, title);
  return {c10::make_intrusive<Work>(rank_, type, title, getSequenceNumberForGroup(), inputs, std::move(outputs)),
          Staging(device),
          {},
          nullptr,
          nullptr};
}

WorkPtr Backend::submit(Operation operation, Line line) {
  WorkPtr work = operation.work;
  auto shared = std::make_shared<Operation>(std::move(operation));
  std::lock_guard lock(order_);
  ++sequence_;
  SerialThread* then = line.kind == Line::Kind::any_order ? nullptr : &waiter(line);
  if (!shared->staging.waits() && !shared->first && starter_.idle()) {
    start(shared, then);
  } else {
    starter_.post([this, shared, then] {
      shared->staging.wait_until_read();
      start(shared, then);
    });
  }
  return work;
}

// If a step fails, the steps before it have started: the library owns their buffers until they end. `then` is nullptr
// for an operation that may end in any order; such an operation has one step.
void Backend::start(const std::shared_ptr<Operation>& operation, SerialThread* then) {
  std::vector<tributary_request*> requests;
  std::string error = operation->first ? find_out(*operation) : std::string();
  const bool open = !error.empty() || communicator_.use([&](tributary_comm* comm) {
    for (const auto& step : operation->steps) {
      tributary_request* request = nullptr;
      const tributary_status status = step(comm, &request);
      if (request != nullptr) requests.push_back(request);
      if (status == TRIBUTARY_OK) continue;
      error = sentence(operation->work->title(), status);
      break;
    }
  });
  if (!open) error = kClosed;
  if (then == nullptr)
    return finish_in_any_order(operation, requests.empty() ? nullptr : requests.front(), std::move(error));
  then->post([this, operation, requests, error] { finish(*operation, requests, error); });
}

// Returns the reason why the operation cannot continue, or an empty text. During this wait the communicator is not
// locked, so that abort() can end the wait.
std::string Backend::find_out(Operation& operation) {
  tributary_request* request = nullptr;
  tributary_status status = TRIBUTARY_OK;
  const char* title = operation.work->title();
  if (!communicator_.use([&](tributary_comm* comm) { status = operation.first(comm, &request); })) return kClosed;
  if (status != TRIBUTARY_OK) return sentence(title, status);
  status = tributary_wait(request, -1);
  if (status != TRIBUTARY_OK) return sentence(title, status);
  try {
    operation.add_steps(operation);
  } catch (const std::exception& error) {
    return c10::str(title, ": ", error.what());
  }
  return {};
}

void Backend::finish(Operation& operation, const std::vector<tributary_request*>& requests, std::string error) {
  for (tributary_request* request : requests) {
    tributary_request_details details{};
    details.struct_bytes = sizeof details;
    if (tributary_request_info(request, -1, &details) == TRIBUTARY_OK) operation.work->count(details);
    const tributary_status status = tributary_wait(request, -1);
    if (status != TRIBUTARY_OK && error.empty()) error = sentence(operation.work->title(), status);
  }
  conclude(operation, error);
}

void Backend::finish_in_any_order(const std::shared_ptr<Operation>& operation, tributary_request* request,
                                  std::string error) {
  const auto then = [operation](const std::string& why, int peer) {
    if (operation->work->retrieveOpType() != c10d::OpType::SEND) operation->work->came_from(peer);
    conclude(*operation, why);
  };
  request != nullptr ? endings_.follow(request, operation->work->title(), then) : endings_.end(then, std::move(error));
}

void Backend::conclude(Operation& operation, const std::string& error) {
  if (!error.empty()) return operation.work->fail(backend_error(error));
  try {
    operation.staging.deliver([&] { operation.work->succeed(); });
  } catch (...) {
    operation.work->fail(std::current_exception());
  }
}

SerialThread& Backend::waiter(Line line) {
  auto& thread = waiters_[line];
  if (!thread) thread = std::make_unique<SerialThread>();
  return *thread;
}

void Backend::drain() {
  if (!made_here_) return;
  starter_.drain();
  std::vector<SerialThread*> threads;
  {
    std::lock_guard lock(order_);
    for (const auto& [line, thread] : waiters_) threads.push_back(thread.get());
  }
  for (SerialThread* thread : threads) thread->drain();
  endings_.drain();
}

void Backend::shutdown() {
  drain();
  const tributary_status status = communicator_.close();
  if (status != TRIBUTARY_OK) TORCH_WARN(sentence("tributary:destroy_process_group", status));
}

void Backend::abort() {
  abort_because("torch.distributed aborted the process group");
}

void Backend::abort_because(const char* reason) {
  communicator_.abort(reason);
  drain();
}

void Backend::end(std::chrono::steady_clock::time_point deadline) {
  communicator_.end(deadline, "its process ended without destroy_process_group()");
  drain();
}

void Backend::use(const std::function<void(tributary_comm*)>& call) {
  if (!communicator_.use(call)) C10_THROW_ERROR(DistBackendError, kClosed);
}

void Backend::close_all(bool failed) {
  std::vector<Backend*> backends;
  {
    std::lock_guard lock(registry_mutex);
    backends.assign(registry.rbegin(), registry.rend());
  }
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  for (Backend* backend : backends) {
    failed ? backend->abort_because("an uncaught exception ended its process") : backend->end(deadline);
  }
}

}  // namespace tributary::torch
