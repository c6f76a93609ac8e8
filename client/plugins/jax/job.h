#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/communicator.h"
#include "client/plugins/jax/members.h"
#include "tributary/tributary.h"

namespace tributary::jax {

inline constexpr std::size_t kFailureBytes = 256;

/// The counters of all communicators of the process, and the path of the world's.
struct JobInfo {
  tributary_info world{};
  std::size_t communicators = 0;  // communicators of XLA; one of all ranks does not count if it is the world's: split()
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_fallback = 0;
  std::uint64_t bytes_local = 0;
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
};

/// The communicators of this process, from tributary_jax_start() to MPI_Finalize. Any thread may call it.
///
/// XLA makes its collectives one after the other, in the order of the program, which is the same on all processes. So
/// splits and collectives may share the world's communicator.
class Job {
 public:
  /// Lets all ranks meet. Collective. Fails if the job has started already.
  tributary_status start(int rank, int size, const tributary_unique_id& id, const tributary_config& config,
                         std::string& error);
  /// Ends all communicators, in the order in which they were made. Collective; does nothing the second time. If the
  /// program's failure has a text, the other ranks get an error with this text at once.
  void finish();
  /// `failure` writes the reason if the program fails, at most kFailureBytes with the null at its end. finish() calls it.
  void ask_at_end(void (*failure)(char* text));
  [[nodiscard]] bool finished() const;

  /// Returns a communicator that says why the handle has none, if it has none.
  [[nodiscard]] std::shared_ptr<Communicator> find(Comm handle) const;
  /// Makes the communicator of the ranks with the same color. All ranks of the world call it. Returns kCommNull for
  /// kUndefined. If a communicator has all ranks in the world's order, it is the world's own.
  Comm split(const SplitArguments& arguments);
  void free(Comm handle);
  [[nodiscard]] std::optional<JobInfo> info() const;

 private:
  [[nodiscard]] std::shared_ptr<Communicator> split_of(const Communicator& world, const SplitArguments& mine) const;
  [[nodiscard]] std::shared_ptr<Communicator> meet(const Communicator& world, const Members& members) const;

  mutable std::mutex mutex_;  // not held while this rank waits for other ranks
  std::map<Comm, std::shared_ptr<Communicator>> made_;
  Comm next_ = kCommFirst;
  bool finished_ = false;
  void (*failure_)(char*) = nullptr;
};

/// Returns the job of the process. It is never destroyed: XLA frees communicators while the process ends.
[[nodiscard]] Job& job();

}  // namespace tributary::jax
