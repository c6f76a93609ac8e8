#include <spdlog/fmt/fmt.h>

#include "client/cli/compare/comparison_report.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

std::string times_as_fast(double slower_us, double tree_us) {
  return fmt::format("{:.2f}", slower_us / tree_us);
}

}  // namespace

std::string words_of(const Comparison& comparison) {
  const bool one = comparison.aggregators == 1;
  const std::string links = comparison.aggregator_link_bits == 0 ? "as fast as this machine"
                                                                 : "of " + rate_text(comparison.aggregator_link_bits);
  return fmt::format("{} hosts with links of {}, {} {} with {} {}", comparison.hosts, rate_text(comparison.link_bits),
                     comparison.aggregators, one ? "aggregator" : "aggregators", one ? "a link" : "links", links);
}

std::string time_text(double microseconds) {
  for (const auto& [limit, factor, unit] : {std::tuple{1e3, 1.0, "us"}, {1e6, 1e-3, "ms"}, {1e300, 1e-6, "s"}}) {
    if (microseconds >= limit * 0.9995) continue;
    const double value = microseconds * factor;
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
  }
  return "for ever";
}

double gain_of_links(const Comparison& comparison) {
  return 2.0 * (comparison.hosts - 1) / comparison.hosts;
}

std::string comparison_table(const Comparison& comparison, bool colour) {
  const bool with_gloo = comparison.gloo_absent.empty();
  std::vector<std::string> names{"SIZE", "TREE", "RANKS ALONE"};
  if (with_gloo) names.emplace_back("GLOO");
  names.emplace_back("TREE/RANKS");
  if (with_gloo) names.emplace_back("TREE/GLOO");
  names.emplace_back("IN THE NETWORK");
  Table table(std::move(names));
  for (const ComparedSize& size : comparison.sizes) {
    std::vector<std::string> cells{bytes_text(size.bytes), time_text(size.tree_us), time_text(size.ranks_us)};
    if (with_gloo) cells.push_back(size.gloo_us ? time_text(*size.gloo_us) : "");
    cells.push_back(times_as_fast(size.ranks_us, size.tree_us));
    if (with_gloo) cells.push_back(size.gloo_us ? times_as_fast(*size.gloo_us, size.tree_us) : "");
    cells.push_back(fmt::format("{:.0f} %", 100 * size.in_network));
    table.add(std::move(cells));
  }
  std::string text = "all_reduce of float32: " + words_of(comparison) + "\n" + table.text(colour);
  if (!with_gloo) text += "Gloo is left out: " + comparison.gloo_absent + "\n";
  text += fmt::format("TREE/RANKS: how many times as fast the tree is; the links alone allow {:.2f}.\n",
                      gain_of_links(comparison));
  return text;
}

}  // namespace tributary::cli
