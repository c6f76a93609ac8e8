#include "client/plugins/nccl/rdma_port.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "client/plugins/nccl/first_line.h"

namespace tributary::nccl {
namespace {

namespace fs = std::filesystem;

/// Returns the folder's entries in sorted order: the system lists them in any order.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> list;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    list.push_back(at->path());
  }
  std::ranges::sort(list);
  return list;
}

/// For RoCE and iWARP: every GID names its network interface, including VLANs and bonds. Unused slots cannot be read.
bool has_gid_of(const fs::path& port, const std::string& interface) {
  return std::ranges::any_of(entries_of(port / "gid_attrs" / "ndevs"),
                             [&](const fs::path& gid) { return first_line(gid) == interface; });
}

/// For InfiniBand: the interface (IPoIB) and the RDMA device have the same parent. The interface counts its port from
/// 0.
bool is_interface_of_port(const fs::path& device, int port, const fs::path& net, const std::string& interface) {
  std::error_code error;
  return fs::exists(device / "device" / "net" / interface, error) &&
         number_in(first_line(net / interface / "dev_port"), 0) + 1 == port;
}

/// Reads a rate such as "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)".
int speed_from(const std::string& rate) {
  return static_cast<int>(std::strtod(rate.c_str(), nullptr) * 1000);
}

/// Reads a GUID such as "9803:9b03:0067:ab58".
std::uint64_t guid_from(std::string text) {
  std::erase(text, ':');
  std::uint64_t guid = 0;
  std::from_chars(text.data(), text.data() + text.size(), guid, 16);
  return guid;
}

}  // namespace

std::optional<RdmaPort> rdma_port_of(const std::string& interface, const fs::path& root) {
  for (const fs::path& device : entries_of(root / "class" / "infiniband")) {
    for (const fs::path& port : entries_of(device / "ports")) {
      const int number = number_in(port.filename(), 0);
      if (!has_gid_of(port, interface) && !is_interface_of_port(device, number, root / "class" / "net", interface)) {
        continue;
      }
      return RdmaPort{.device = device.filename(),
                      .port = number,
                      .active = first_line(port / "state").starts_with("4:"),
                      .speed_mbps = speed_from(first_line(port / "rate")),
                      .guid = guid_from(first_line(device / "node_guid"))};
    }
  }
  return std::nullopt;
}

}  // namespace tributary::nccl
