#pragma once
// The memory of operations: registers it with the network for longer than a segment, and moves it to host memory if the
// processor cannot reach it.
#include "client/communicator/tree_life.h"

namespace tributary::client {

class OperationMemory {
 public:
  OperationMemory(Shared& shared, TreeLife& trees) : shared_(shared), trees_(trees) {}

  /// Registers large buffers once for the operation, not for each segment.
  void keep_registered(Operation& operation) const;
  /// Prepares for operations with this memory. The error says why these would not use it directly.
  [[nodiscard]] Status prepare(DirectMemory& memory);
  /// Decides where the data will be of an operation that has device memory and has not started. `by_tree`: the
  /// operation goes through a tree, which uses its buffers where they are if it can.
  void settle(Operation& operation, bool by_tree);
  /// Moves the operation to host memory. The network must not touch the operation's own memory any more. A rank that
  /// cannot copy its data there ends the communicator, because it is of no use to the others. `why` says, for people,
  /// what was wrong with the direct way.
  void leave_direct(Operation& operation, const Status& why);

 private:
  Shared& shared_;
  TreeLife& trees_;
};

}  // namespace tributary::client
