#include "tree-manager/topology/import/slurm_conf.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "service-kit/units.h"
#include "tree-manager/topology/import/slurm_tree.h"

namespace tributary::manager {
namespace {

constexpr std::uint32_t kIncludeDepthMax = 8;
constexpr std::uint32_t kIncludesMax = 64;
constexpr std::size_t kLineBytesMax = 1U << 20;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Removes the part of `text` from a '#' without a backslash before it.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = text.find('#'); i != std::string_view::npos; i = text.find('#', i + 1)) {
    if (i == 0 || text[i - 1] != '\\') return text.substr(0, i);
  }
  return text;
}

struct Pair {
  std::string key;  // in lower case
  std::string_view value;
};

/// Removes the first `Key=value` or `Key="a value"`, and returns it; nothing if the text does not begin with one.
std::optional<Pair> next_pair(std::string_view& text) {
  text = trimmed(text);
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const std::string_view key = trimmed(text.substr(0, equals));
  if (key.find_first_of(" \t\"") != std::string_view::npos) return std::nullopt;
  text = trimmed(text.substr(equals + 1));
  if (text.starts_with('"')) {
    const std::size_t end = text.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return Pair{lower(key), value};
  }
  return Pair{lower(key), next_word(text)};
}

class ConfReader {
 public:
  ConfReader(const std::string& file, const ReadIncluded& included) : notes_(file), included_(included) {}

  Result<FoundFabric> read(std::string_view text) {
    read_text(text, 0);
    if (tree_.switches.empty() && !notes_.any_wrong()) {
      notes_.wrong(std::max<std::size_t>(line_, 1), "no SwitchName= or BlockName= is here");
    }
    FoundFabric fabric;
    if (!notes_.any_wrong()) join_slurm_tree(tree_, notes_, fabric);
    if (auto ok = notes_.status(); !ok) return std::unexpected(ok.error());
    if (speeds_without_unit_ != 0) {
      fabric.warnings.push_back(std::to_string(speeds_without_unit_) +
                                " values of LinkSpeed were left out: write them with a unit, as 100Gbit/s");
    }
    notes_.report(fabric.warnings);
    return fabric;
  }

 private:
  /// `line_` counts the lines of the first file; a mistake in an included file is reported at its Include line.
  void read_text(std::string_view text, std::uint32_t depth) {
    std::string joined;
    while (!text.empty() && !notes_.any_wrong()) {
      std::string_view line = trimmed(without_comment(next_line(text)));
      if (depth == 0) ++line_;
      const bool goes_on = line.ends_with('\\');
      if (goes_on) line.remove_suffix(1);
      if (joined.size() + line.size() > kLineBytesMax) return notes_.wrong(line_, "the line is too long");
      joined += line;
      if (goes_on && !text.empty()) {
        joined += ' ';
        continue;
      }
      read_line(joined, depth);
      joined.clear();
    }
  }

  void read_line(std::string_view line, std::uint32_t depth) {
    line = trimmed(line);
    if (line.empty()) return;
    std::string_view rest = line;
    if (lower(next_word(rest)) == "include") return include(std::string(trimmed(rest)), depth);
    SlurmSwitch made{.line = line_};
    bool block = false;
    std::string_view text = line;
    while (!trimmed(text).empty()) {
      const auto pair = next_pair(text);
      if (!pair) return notes_.skipped(line_, line);
      if (!take(*pair, made, block)) return;
    }
    if (made.name.empty()) return;
    if (!tree_.switches.empty() && tree_.blocks != block) {
      return notes_.wrong(line_, "switches and blocks stand in one file; Slurm takes one of the two kinds");
    }
    tree_.blocks = block;
    tree_.children += made.switches.size() + made.nodes.size();
    if (tree_.switches.size() >= kFoundNodesMax) return notes_.wrong(line_, "too many switches");
    tree_.switches.push_back(std::move(made));
  }

  /// Returns false after a mistake.
  bool take(const Pair& pair, SlurmSwitch& made, bool& block) {
    const std::size_t left = kFoundLinksMax - std::min(kFoundLinksMax, tree_.children);
    Status ok;
    if (pair.key == "switchname" || pair.key == "blockname") {
      made.name = pair.value;
      block = pair.key == "blockname";
    } else if (pair.key == "switches") {
      ok = expand_hostlist(pair.value, left, made.switches);
    } else if (pair.key == "nodes") {
      ok = expand_hostlist(pair.value, left, made.nodes);
    } else if (pair.key == "linkspeed") {
      const auto rate = service::parse_rate(pair.value);
      made.link_bits_per_second = rate.value_or(0);
      if (!rate) ++speeds_without_unit_;
    } else if (pair.key == "ringname") {
      ok = fail(Errc::bad_config, "topology/ring is no fabric known here; import trees and blocks");
    } else if (pair.key != "blocksizes") {
      notes_.skipped(line_, pair.key + "=");
    }
    if (!ok) notes_.wrong(line_, ok.error().message);
    return ok.has_value();
  }

  void include(const std::string& name, std::uint32_t depth) {
    if (name.empty()) return notes_.wrong(line_, "Include is followed by no file's name");
    if (depth >= kIncludeDepthMax || ++includes_ > kIncludesMax) {
      return notes_.wrong(line_, "files include each other " + std::to_string(kIncludeDepthMax) +
                                     " deep, or more than " + std::to_string(kIncludesMax) + " times");
    }
    const auto text = included_ ? included_(name) : Result<std::string>(fail(Errc::bad_config, "it is not at hand"));
    if (!text) return notes_.wrong(line_, "the included file '" + name + "': " + text.error().message);
    read_text(*text, depth + 1);
  }

  ImportNotes notes_;
  const ReadIncluded& included_;
  SlurmTree tree_;
  std::size_t line_ = 0;
  std::size_t speeds_without_unit_ = 0;
  std::uint32_t includes_ = 0;
};

}  // namespace

Result<FoundFabric> read_slurm_conf(std::string_view text, const std::string& file, const ReadIncluded& included) {
  return ConfReader(file, included).read(text);
}

bool looks_like_slurm_conf(std::string_view text) {
  constexpr int kLinesSeen = 200;
  for (int i = 0; i < kLinesSeen && !text.empty(); ++i) {
    std::string_view line = without_comment(next_line(text));
    const auto pair = next_pair(line);
    if (pair && (pair->key == "switchname" || pair->key == "blockname" || pair->key == "ringname")) return true;
  }
  return false;
}

}  // namespace tributary::manager
