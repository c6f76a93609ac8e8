#pragma once
// The RDMA port behind a network interface, as the kernel's files tell of it: what NCCL is told of a device whose
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
  int speed_mbps = 0;      // 0: it does not say
  std::uint64_t guid = 0;  // of the device: its ports share it
};

/// Nothing: no RDMA device speaks through this interface. `root`: "/sys" but in tests.
[[nodiscard]] std::optional<RdmaPort> rdma_port_of(const std::string& interface,
                                                   const std::filesystem::path& root = "/sys");

}  // namespace tributary::nccl
