#pragma once
// The RDMA port behind a network interface, from the kernel's files: the plugin reports it to NCCL for a device whose
// messages go over verbs.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tributary::nccl {

struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  bool active = false;
  int speed_mbps = 0;      // 0: unknown
  std::uint64_t guid = 0;  // the device's; its ports share it
};

/// nullopt if no RDMA device uses this interface. `root` is "/sys" except in tests.
[[nodiscard]] std::optional<RdmaPort> rdma_port_of(const std::string& interface,
                                                   const std::filesystem::path& root = "/sys");

}  // namespace tributary::nccl
