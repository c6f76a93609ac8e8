#pragma once
// One rank of the check, with NCCL's threads: this thread initialises, the service thread connects and registers
// memory, and the progress thread moves data.
#include <optional>

#include "client/cli/nccl_check/bootstrap.h"
#include "client/cli/nccl_check/failure.h"
#include "client/cli/nccl_check/library.h"
#include "client/cli/nccl_check/worker.h"

namespace tributary::cli::nccl_check {

struct Options {
  std::string plugin = "tributary";  // value of NCCL_NET_PLUGIN
  int newest = kNewestVersion;       // ignore newer tables, as an older NCCL does
  int communicators = 2;
  int channels = 8;
  int depth = 16;       // number of collectives in flight of each communicator
  int connections = 4;  // number of connections to each peer
  int rounds = 0;       // number of further rounds of allreduces, between which the ranks exchange no messages
  int message_rounds = 1;
  double seconds = 0;  // duration of further allreduces, in seconds
  bool measure = false;
  bool expect_off = false;          // fail unless CollNet is off here
  bool require_in_network = false;  // fail unless bytes go by a tree
};

/// Prints a line that begins with the rank, so that a reader can tell the ranks' lines apart.
void say(int rank, const std::string& line);

class Session {
 public:
  /// Loads the plugin, and initialises it as NCCL does for the first communicator of a process.
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
  /// True if CollNet is on at every rank: NCCL uses it only then.
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
