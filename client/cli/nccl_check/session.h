#pragma once
// One rank of the check, with NCCL's threads: this thread initialises, the service thread connects and registers, the
// progress thread moves data.
#include <optional>

#include "client/cli/nccl_check/bootstrap.h"
#include "client/cli/nccl_check/failure.h"
#include "client/cli/nccl_check/library.h"
#include "client/cli/nccl_check/worker.h"

namespace tributary::cli::nccl_check {

struct Options {
  std::string plugin = "tributary";  // value of NCCL_NET_PLUGIN
  int newest = kNewestVersion;       // newer tables are ignored, as an older NCCL would
  int communicators = 2;
  int channels = 8;
  int depth = 16;       // collectives in flight of each communicator
  int connections = 4;  // to each peer
  int rounds = 0;       // further rounds of allreduces, between which the ranks do not communicate
  int message_rounds = 1;
  double seconds = 0;  // seconds of further allreduces
  bool measure = false;
  bool expect_off = false;          // CollNet must be off here
  bool require_in_network = false;  // bytes must go by a tree
};

/// Prints a line that begins with the rank, so that lines of several ranks can be told apart.
void say(int rank, const std::string& line);

class Session {
 public:
  /// Loads the plugin and initialises it as NCCL does for the first communicator of a process.
  Session(const Options& options, Bootstrap& bootstrap);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Bootstrap& bootstrap() noexcept { return bootstrap_; }
  [[nodiscard]] int rank() const noexcept { return bootstrap_.rank(); }
  [[nodiscard]] int ranks() const noexcept { return bootstrap_.ranks(); }
  [[nodiscard]] NetTable& net() noexcept { return *net_; }
  [[nodiscard]] CollNetTable& collnet() noexcept { return *collnet_; }
  [[nodiscard]] void* net_context() const noexcept { return net_context_; }
  [[nodiscard]] void* collnet_context() const noexcept { return collnet_context_; }
  /// True if CollNet is on at every rank: only then NCCL uses it.
  [[nodiscard]] bool collnet_is_on() const noexcept { return collnet_on_everywhere_; }
  [[nodiscard]] Worker& service() noexcept { return service_; }
  [[nodiscard]] Worker& progress() noexcept { return progress_; }

 private:
  void initialise();
  void compare_devices();

  const Options options_;
  Bootstrap& bootstrap_;
  Library library_;
  std::unique_ptr<NetTable> net_;
  std::unique_ptr<CollNetTable> collnet_;
  void* net_context_ = nullptr;
  void* collnet_context_ = nullptr;
  bool collnet_on_ = false;
  bool collnet_on_everywhere_ = false;
  Worker service_;
  Worker progress_;
};

}  // namespace tributary::cli::nccl_check
