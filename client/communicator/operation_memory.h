#pragma once
// The memory of operations: registers it with the network for longer than a segment, and moves it to host memory if the
// processor cannot reach it.
#include "client/communicator/tree_life.h"

namespace tributary::client {

class OperationMemory {
 public:
  OperationMemory(Shared& shared, TreeLife& trees) : shared_(shared), trees_(trees) {}

  /// Registers large buffers once for the whole operation, instead of once for each segment.
  void keep_registered(Operation& operation) const;
  /// Prepares for operations with this memory. The error says why the operations would not use the memory directly.
  [[nodiscard]] Status prepare(DirectMemory& memory);
  /// Decides the place of an operation's data; the operation has device memory and has not started. `by_tree`: it goes
  /// through a tree, which uses the buffers in place if it can.
  void settle(Operation& operation, bool by_tree);
  /// Moves the operation to host memory; the network must have stopped using the operation's own memory. A rank that
  /// cannot copy its data to host memory ends the communicator, because it cannot take part. `why` says, for people,
  /// why the direct way is not possible.
  void leave_direct(Operation& operation, const Status& why);

 private:
  Shared& shared_;
  TreeLife& trees_;
};

}  // namespace tributary::client
