#pragma once
// Reads the descriptions in an InfiniBand fabric: rates of links, and the names of nodes.
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary::manager {

/// Returns the data rate of a link in bits per second, without its line coding: "4x" and "HDR" give 200 Gbit/s. Returns
/// 0 for a width or speed that is not known. (InfiniBand Architecture Specification, volume 1.)
[[nodiscard]] std::uint64_t ib_rate(std::string_view width, std::string_view speed);
/// Reads a text such as "4xHDR".
[[nodiscard]] std::uint64_t ib_rate(std::string_view text);

/// Returns the host that a channel adapter's description names ("node-1 mlx5_0"), or empty: if the host has not set the
/// description, it names only the chip.
[[nodiscard]] std::string_view host_in_description(std::string_view description);
/// Returns the adapter's name in the description of a channel adapter: its second word, or empty.
[[nodiscard]] std::string_view adapter_in_description(std::string_view description);
/// True if the description names the part of a switch that sums in the network: this part is no host.
[[nodiscard]] bool is_aggregation_node(std::string_view description);
/// Returns a switch's name without the decoration of its management software ("MF0;ib-leaf-1:MQM8700/U1"), or empty if
/// the description names only the chip.
[[nodiscard]] std::string switch_in_description(std::string_view description);

}  // namespace tributary::manager
