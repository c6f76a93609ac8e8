#pragma once
// The memory of operations: what of it the network keeps registered, and where it is when the processor does not reach
// it.
#include "client/communicator/tree_life.h"

namespace tributary::client {

class OperationMemory {
 public:
  OperationMemory(Shared& shared, TreeLife& trees) : shared_(shared), trees_(trees) {}

  /// Registers large buffers once, and not for each segment.
  void keep_registered(Operation& operation) const;
  /// Makes ready what operations with this memory need. The error says why they would not go as they are.
  [[nodiscard]] Status prepare(DirectMemory& memory);
  /// Settles an operation that has not started, with memory of its own kind: `by_tree` says whether it goes through a
  /// tree. There its buffers stay where they are, if they can.
  void settle(Operation& operation, bool by_tree);
  /// Nothing of the network touches the operation's own memory any more: it goes on in host memory. A rank that can
  /// have no copy there ends the communicator: it can do nothing more for the others. `why`: not directly, for people.
  void leave_direct(Operation& operation, const Status& why);

 private:
  Shared& shared_;
  TreeLife& trees_;
};

}  // namespace tributary::client
