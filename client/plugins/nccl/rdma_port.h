#pragma once
// The RDMA port behind a network interface, from the kernel's files. The plugin reports it to NCCL for each device
// whose messages go over verbs.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tributary::nccl {

struct RdmaPort {
  std::string device;  // name of the device, such as "mlx5_0"
  int port = 1;
  bool active = false;
  int speed_mbps = 0;      // 0: unknown
  std::uint64_t guid = 0;  // GUID of the device; all ports of the device share it
};

/// Returns nullopt if no RDMA device uses this interface. `root` is "/sys" except in tests.
[[nodiscard]] std::optional<RdmaPort> rdma_port_of(const std::string& interface,
                                                   const std::filesystem::path& root = "/sys");

}  // namespace tributary::nccl
