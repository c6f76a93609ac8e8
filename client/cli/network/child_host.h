#pragma once
#include <string>

namespace tributary::cli {

/// A host of its own for a child process.
struct ChildHost {
  int network = -1;  // the descriptor of a network namespace; -1: this process's
  std::string name;  // its host name; empty: this machine's
};

}  // namespace tributary::cli
