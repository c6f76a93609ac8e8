#pragma once
// The plugin's own counts of bytes by path. NCCL's tables do not have them; the file of TRIBUTARY_NCCL_METRICS has
// them.
#include <cstdint>
#include <string>

namespace tributary::cli::nccl_check {

class Traffic {
 public:
  /// Names a file for the plugin's metrics, unless the environment names one. Call it before the plugin is loaded.
  Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  /// Removes the file, unless the environment named it.
  ~Traffic();

  struct Bytes {
    std::uint64_t in_network = 0, between_ranks = 0, in_shared_memory = 0;
  };
  /// Reads the counts that the plugin wrote when its last group ended.
  [[nodiscard]] Bytes read() const;

 private:
  std::string file_;
  bool own_ = false;
};

/// Returns a text such as "bytes in-network 4096 (50.0 %), between ranks 4096, in shared memory 0".
[[nodiscard]] std::string to_string(const Traffic::Bytes& bytes);

}  // namespace tributary::cli::nccl_check
