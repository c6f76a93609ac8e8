#pragma once
// Another net plugin, whose connections NCCL uses for messages between ranks in place of this plugin's connections
// (TRIBUTARY_NCCL_NET). So its abilities stay, such as GPUDirect and EFA. Collectives stay with this plugin.
#include <array>
#include <string>

#include "client/plugins/nccl/abi/net_versions.h"

namespace tributary::nccl {

class OtherPlugin {
 public:
  /// Loads the plugin. `name` is a path, the name of a file, or X for libnccl-net-X.so, as for NCCL_NET_PLUGIN.
  explicit OtherPlugin(std::string name);

  /// Returns the plugin that TRIBUTARY_NCCL_NET names; nullptr if the variable is not set. The first call loads it.
  /// The plugin stays loaded until the process ends, because it may have threads.
  [[nodiscard]] static const OtherPlugin* process();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns a whole sentence that says why the plugin cannot be used; empty if it can be used.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Returns the plugin's table of this version; nullptr if it has none.
  template <int kVersion>
  [[nodiscard]] const abi::NetTable<kVersion>* table() const noexcept {
    return static_cast<const abi::NetTable<kVersion>*>(tables_[kVersion]);
  }

 private:
  const std::string name_;
  std::string failure_;
  std::array<const void*, abi::kNetVersionNewest + 1> tables_{};  // index: the version
};

}  // namespace tributary::nccl
