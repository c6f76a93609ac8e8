#pragma once
// The memory of operations: registers it with the network for longer than a segment, and moves it to host memory if the
// processor cannot reach it.
#include "client/communicator/tree_life.h"

namespace tributary::client {

class OperationMemory {
 public:
  OperationMemory(Shared& shared, TreeLife& trees) : shared_(shared), trees_(trees) {}

  /// Registers large buffers once, and not for each segment.
  void keep_registered(Operation& operation) const;
  /// Prepares for operations with this memory. The error says why they would not go direct.
  [[nodiscard]] Status prepare(DirectMemory& memory);
  /// Decides where the data of an operation that has not started are, if its memory is a device's. `by_tree`: it goes
  /// through a tree, for which its buffers stay where they are, if they can.
  void settle(Operation& operation, bool by_tree);
  /// Moves the operation to host memory, when the network does not touch its own memory any more. A rank that cannot
  /// copy its data there ends the communicator: it is of no more use to the others. `why`: why not direct, for people.
  void leave_direct(Operation& operation, const Status& why);

 private:
  Shared& shared_;
  TreeLife& trees_;
};

}  // namespace tributary::client
