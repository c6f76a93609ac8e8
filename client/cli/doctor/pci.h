#pragma once
// The PCI bus, as /sys shows it: GPUs, RDMA devices, and the bridges between them.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tributary/transport/rails.h"

namespace tributary::cli::doctor {

/// Returns the ids of all GPUs of NVIDIA and AMD, such as "0000:1b:00.0"; a GPU may lack a driver.
[[nodiscard]] std::vector<std::string> gpus_of(const transport::SystemTree& system);
[[nodiscard]] bool is_nvidia(const transport::SystemTree& system, const std::string& id);

/// The distance between two devices, with the names of nvidia-smi.
enum class PciDistance : std::uint8_t {
  pix,   // one PCIe switch between the devices
  pxb,   // several switches, but no host bridge
  phb,   // a host bridge: the processor's root complex
  node,  // several host bridges of one NUMA node
  sys,   // the connection between NUMA nodes
  unknown,
};
[[nodiscard]] const char* to_string(PciDistance distance) noexcept;
/// Returns the distance between two devices, which their folders below /sys/devices name.
[[nodiscard]] PciDistance pci_distance(const transport::SystemTree& system, const std::string& one,
                                       const std::string& other);
/// Returns the ids of the bridges through which data pass between the devices. The lowest bridge above both
/// devices is not among them.
[[nodiscard]] std::vector<std::string> bridges_between(const std::string& one, const std::string& other);

/// The speed and width of a PCIe link, and the greatest that both of its ends support.
struct PciLink {
  double gigatransfers = 0, gigatransfers_max = 0;
  std::int64_t width = 0, width_max = 0;
  /// Returns the link's present rate as a part of its greatest rate; 1 is the greatest.
  [[nodiscard]] double part() const;
  [[nodiscard]] std::string text() const;  // a text such as "16 GT/s x8 of 32 GT/s x16"
};
/// Returns the link of a device; nullopt: the device has no PCIe link, as in most virtual machines.
[[nodiscard]] std::optional<PciLink> link_of(const transport::SystemTree& system, const std::string& folder);

/// The largest window (BAR) through which other devices reach a GPU's memory.
struct Bar {
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;  // greatest size that the card offers; 0: the kernel does not say
};
[[nodiscard]] std::optional<Bar> largest_bar(const transport::SystemTree& system, const std::string& folder);

enum class Acs : std::uint8_t {
  off,
  redirects,   // the bridge sends requests or answers between devices up to the root complex
  unreadable,  // only root may read this bridge's configuration
};
[[nodiscard]] Acs acs_of(const transport::SystemTree& system, const std::string& id);

}  // namespace tributary::cli::doctor
