#pragma once
// Shows a comparison as a table for the terminal, and as a picture.
#include <string>

#include "client/cli/compare/comparison.h"

namespace tributary::cli {

[[nodiscard]] std::string comparison_table(const Comparison& comparison, bool colour);
/// Returns an SVG document: for each size the bytes per time of each contestant, and the limits of the links.
[[nodiscard]] std::string comparison_picture(const Comparison& comparison);

/// Returns a text: "8 hosts with links of 1 Gbit/s, 1 aggregator with a link as fast as this machine".
[[nodiscard]] std::string words_of(const Comparison& comparison);
/// Returns a text such as "137 ms": three digits, in us, ms or s.
[[nodiscard]] std::string time_text(double microseconds);
/// Returns the speed of a tree as a multiple of the speed of the ranks alone, if only the links limited both.
[[nodiscard]] double gain_of_links(const Comparison& comparison);

}  // namespace tributary::cli
