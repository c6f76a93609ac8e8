#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "communicator.h"
#include "endings.h"
#include "serial_thread.h"
#include "staging.h"
#include "work.h"

namespace tributary::torch {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// One call of torch.distributed on its way through the library. Each step starts one request. All steps of an
/// operation are started together, and the operation ends when all its requests have ended.
struct Operation {
  using Step = std::function<tributary_status(tributary_comm*, tributary_request**)>;

  c10::intrusive_ptr<Work> work;
  Staging staging;
  std::vector<Step> steps;
  /// Set if the steps depend on data of other ranks. `first` starts a request that ends before the steps begin;
  /// add_steps() then adds the steps. Later calls of this rank start after these steps.
  Step first;
  std::function<void(Operation&)> add_steps;
};

/// The queue in which operations of one kind wait for their end. Collectives end in the order of their calls. Messages
/// between two ranks end in the order of their calls, for each peer and direction. Messages and collectives must not
/// wait for each other. Messages with tags, and receives from any rank, end in any order.
struct Line {
  enum class Kind { collective, send, receive, any_order } kind = Kind::collective;
  int peer = 0;
  auto operator<=>(const Line&) const = default;
};

/// The backend "tributary" of torch.distributed: turns its calls into calls of the C API.
///
/// Threads: calls arrive on the caller's thread, which hands CPU tensors to the library at once. For accelerator
/// tensors, a starter thread first waits for their copy to the host. Later calls then queue behind this call, so that
/// the library gets all calls in their order. One thread per Line waits for requests in order and completes the works.
/// One more thread completes the works that may end in any order. None of these threads takes the interpreter lock.
class Backend : public c10d::Backend {
 public:
  /// Takes over the communicator that all `size` ranks have made together.
  Backend(tributary_comm* comm, int rank, int size);
  ~Backend() override;

  const std::string getBackendName() const override { return "tributary"; }
  std::uint64_t getSequenceNumberForGroup() override;
  void setSequenceNumberForGroup() override {}

  // Collectives that reduce.
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(std::vector<at::Tensor>& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr allreduce_sparse(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  // Collectives that only move data.
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;

  // Messages between two ranks, and the barrier.
  WorkPtr send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  /// Waits for this rank's operations, then for every rank, at most for the group's time-out. A second call does
  /// nothing.
  void shutdown() override;
  /// Ends every unfinished operation with an error, on this rank and on the other ranks.
  void abort() override;

  /// Runs `call` with the communicator. Raises an error if the group is shut down.
  void use(const std::function<void(tributary_comm*)>& call);

  /// Ends the groups that still exist when the interpreter ends. The other ranks are told that destroy_process_group()
  /// was not called: at once after an uncaught exception, otherwise only if they do not end within half a second.
  static void close_all(bool failed);

 private:
  void end(std::chrono::steady_clock::time_point deadline);
  void abort_because(const char* reason);
  Operation operation(c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
                      std::vector<at::Tensor> outputs);
  WorkPtr submit(Operation operation, Line line = {});
  void start(const std::shared_ptr<Operation>& operation, SerialThread* then);
  std::string find_out(Operation& operation);
  void finish(Operation& operation, const std::vector<tributary_request*>& requests, std::string error);
  void finish_in_any_order(const std::shared_ptr<Operation>& operation, tributary_request* request, std::string error);
  static void conclude(Operation& operation, const std::string& error);
  SerialThread& waiter(Line line);
  void add_exchange(Operation& operation, const std::vector<at::Tensor>& outputs,
                    const std::vector<at::Tensor>& inputs);
  WorkPtr all_gather_lists(const std::vector<std::vector<at::Tensor>>& outputs, const std::vector<at::Tensor>& inputs);
  void check_peer(int peer, int tag, const char* what) const;
  void drain();

  const MadeHere made_here_;
  Communicator communicator_;
  std::mutex order_;  // locked in the order of the calls; guards the members below
  std::uint64_t sequence_ = 0;
  std::map<Line, std::unique_ptr<SerialThread>> waiters_;
  Endings endings_;
  SerialThread starter_;
};

}  // namespace tributary::torch
