#include "client/cli/manager/tree_drawing.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 32;  // more levels than any tree has; the stack must be enough for malformed input, too

bool is_rank(const json& child) {
  return child.contains("rank");
}

/// Returns the end of a run: the children [begin, end) are consecutive ranks, or one child of any kind.
std::size_t end_of_run(const json& children, std::size_t begin) {
  std::size_t end = begin + 1;
  while (is_rank(children[begin]) && end < children.size() && is_rank(children[end]) &&
         children[end].at("rank").get<std::uint64_t>() == children[end - 1].at("rank").get<std::uint64_t>() + 1) {
    ++end;
  }
  return end;
}

std::string host_of(const json& child) {
  return printable(child.at("host").get<std::string>());
}

std::string ranks_text(const json& first, const json& last) {
  const auto from = first.at("rank").get<std::uint64_t>();
  const auto to = last.at("rank").get<std::uint64_t>();
  if (from == to) return fmt::format("rank {} on {}", from, host_of(first));
  if (host_of(first) == host_of(last)) return fmt::format("ranks {}-{} on {}", from, to, host_of(first));
  return fmt::format("ranks {}-{} on {} ... {}", from, to, host_of(first), host_of(last));
}

std::string node_text(const json& node) {
  return fmt::format("{} on {}, {}", printable(node.at("aggregator").get<std::string>()), host_of(node),
                     printable(node.at("data").get<std::string>()));
}

void draw_children(const json& node, const std::string& indent, int depth, std::string& out) {
  const json& children = node.at("children");
  for (std::size_t begin = 0; begin < children.size() && depth < kDepthMax;) {
    const std::size_t end = end_of_run(children, begin);
    const bool last = end == children.size();
    const bool rank = is_rank(children[begin]);
    out += indent + (last ? "└─ " : "├─ ") +
           (rank ? ranks_text(children[begin], children[end - 1]) : node_text(children[begin])) + "\n";
    if (!rank) draw_children(children[begin], indent + (last ? "   " : "│  "), depth + 1, out);
    begin = end;
  }
}

/// Returns the number of a tree's group; a planned tree has none (0).
std::uint64_t group_of(const json& tree) {
  return tree.value("group", std::uint64_t{0});
}

/// Returns the lane's part of the group's bytes as a text; empty if it is the group's only lane. Lanes of an older
/// manager have no weights, so they count as equal.
std::string share_text(const json& tree, const json& trees) {
  std::uint64_t sum = 0, lanes = 0;
  for (const json& other : trees) {
    if (group_of(other) != group_of(tree)) continue;
    sum += other.value("weight", std::uint64_t{1});
    ++lanes;
  }
  if (lanes < 2 || sum == 0) return "";
  const double share = static_cast<double>(tree.value("weight", std::uint64_t{1})) / static_cast<double>(sum);
  return fmt::format(", {:.3g} % of the bytes", 100 * share);
}

std::string title(const json& tree, const json& trees) {
  std::string text;
  if (tree.contains("group")) {
    text = fmt::format("group {}, job {}, epoch {}, ", tree.at("group").get<std::uint64_t>(),
                       printable(tree.at("job").get<std::string>()), tree.at("epoch").get<std::uint64_t>());
  }
  const auto levels = tree.at("levels").get<std::uint64_t>();
  const auto aggregators = tree.at("aggregators").get<std::uint64_t>();
  text += fmt::format("lane {}: {} {}, {} {}{}", tree.at("lane").get<std::uint64_t>(), levels,
                      levels == 1 ? "level" : "levels", aggregators, aggregators == 1 ? "aggregator" : "aggregators",
                      share_text(tree, trees));
  if (tree.contains("rail")) text += ", rail " + printable(tree.at("rail").get<std::string>());
  return text + "\n";
}

}  // namespace

std::string draw_trees(const json& trees) {
  std::string out;
  for (const json& tree : trees) {
    if (!out.empty()) out += '\n';
    out += title(tree, trees) + node_text(tree.at("root")) + "\n";
    draw_children(tree.at("root"), "", 0, out);
  }
  return out;
}

}  // namespace tributary::cli
