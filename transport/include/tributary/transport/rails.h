#pragma once
// The choice of RDMA ports on this host: ports that the user names, or the ports nearest to a GPU or to a NUMA node, as
// the kernel's files say. The functions depend only on those files, so that tests can give them any host.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/transport/system_tree.h"

namespace tributary::transport {

/// An RDMA port that is up.
struct RdmaPort {
  std::string device;
  int port = 0;
  bool ethernet = false;
};
[[nodiscard]] std::vector<RdmaPort> active_ports(const SystemTree& system);

/// The distance between two devices of the PCI bus.
enum class Distance : std::uint8_t { same_switch, same_root, same_node, other_node, unknown };
/// Both devices are given by their folders below /sys/devices.
[[nodiscard]] Distance distance(const std::string& one, std::optional<std::int64_t> node_of_one,
                                const std::string& other, std::optional<std::int64_t> node_of_other);
[[nodiscard]] const char* to_string(Distance distance) noexcept;
/// The NUMA node of a device; empty if the host has one node only.
[[nodiscard]] std::optional<std::int64_t> numa_node_of(const SystemTree& system, const std::string& folder);
/// The folder below /sys/devices of a PCI function by its id, "0000:3B:00.0", or of an RDMA device by its name; "" if
/// there is none.
[[nodiscard]] std::string folder_of_function(const SystemTree& system, const std::string& bus_id);
[[nodiscard]] std::string folder_of_rdma_device(const SystemTree& system, const std::string& device);

/// A port, and an IP address of it.
struct Rail {
  std::string device;
  int port = 1;
  std::string address;
  friend bool operator==(const Rail&, const Rail&) = default;
};
struct RailWish {
  std::vector<std::string> names;    // "mlx5_0", or "mlx5_0:2" for its second port; empty: nearest ports
  std::string gpu;                   // the GPU's id on the PCI bus; empty: there is none
  std::optional<std::int64_t> node;  // if there is no GPU: the NUMA node of the memory and the processors in use
  std::size_t turn = 0;              // index of the first port to use among equally near ports
};
/// Returns the ports to use, in order: lane n uses the nth port, modulo their number. Errc::bad_config: a name of the
/// wish is not in `all`; Errc::unsupported: there is no port.
[[nodiscard]] Result<std::vector<Rail>> choose_rails(const SystemTree& system, const std::vector<Rail>& all,
                                                     const RailWish& wish);
/// Splits "mlx5_0,mlx5_1:2" into names. Returns no name for "" and "auto".
[[nodiscard]] std::vector<std::string> names_of_rails(std::string_view list);

/// The NUMA node of the processors on which this thread may run; empty if they are in several nodes, or the host has
/// one node.
[[nodiscard]] std::optional<std::int64_t> node_of_this_thread(const SystemTree& system);

}  // namespace tributary::transport
