#pragma once
// The fabric as a program of the cluster has described it: nodes and the cables between them, before they have levels.
// Every importer makes one; arrange.h turns it into a Topology.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::manager {

inline constexpr std::size_t kFoundNodesMax = 1U << 20;
inline constexpr std::size_t kFoundLinksMax = 1U << 22;
inline constexpr std::uint32_t kNoInterface = UINT32_MAX;

struct FoundNode {
  std::string name;      // name in the source
  std::string distinct;  // part that distinguishes nodes of the same name, such as the end of a GUID; or empty
  bool is_switch = false;
  std::uint32_t level = 0;  // 0: arrange() computes it
};

/// One cable. A rate of 0 bits per second is not known.
struct FoundLink {
  std::uint32_t a = 0;  // index into nodes
  std::uint32_t b = 0;
  std::uint64_t rate_bits_per_second = 0;
  std::uint32_t interface = kNoInterface;  // interface of the host at one end: index into interfaces
};

struct FoundFabric {
  bool flat = false;             // true: the source says that switches do not matter
  bool links_are_cables = true;  // false: a link between two switches stands for any number of cables
  std::vector<FoundNode> nodes;
  std::vector<FoundLink> links;
  std::vector<std::string> interfaces;  // each name once; the interfaces of one host do not form a bond
  std::vector<std::string> warnings;    // whole sentences about parts that the importer left out
};

/// Finds nodes by a key that its source never uses twice. Errc::exhausted: too many nodes or links.
class NodeTable {
 public:
  explicit NodeTable(FoundFabric& fabric) : fabric_(fabric) {}
  /// Returns the node of this key; adds `node` if there is none yet.
  [[nodiscard]] Result<std::uint32_t> add(const std::string& key, FoundNode node);
  /// Returns nullptr if there is no node of this key.
  [[nodiscard]] const std::uint32_t* find(const std::string& key) const;
  [[nodiscard]] Status link(std::uint32_t a, std::uint32_t b, std::uint64_t rate_bits_per_second,
                            std::string_view interface = {});

 private:
  FoundFabric& fabric_;
  std::unordered_map<std::string, std::uint32_t> indices_;
  std::unordered_map<std::string, std::uint32_t> interfaces_;
};

/// Collects the mistakes of one text as "FILE:LINE: sentence", and its skipped lines. The number of both is bounded: a
/// wrong file must not fill the terminal.
class ImportNotes {
 public:
  explicit ImportNotes(std::string file) : file_(std::move(file)) {}
  void wrong(std::size_t line, std::string_view why);
  void skipped(std::size_t line, std::string_view text);
  [[nodiscard]] bool any_wrong() const noexcept { return wrong_count_ != 0; }
  /// Returns Errc::bad_config with the mistakes, each on its own line.
  [[nodiscard]] Status status() const;
  /// Adds a sentence about the skipped lines, if there are any.
  void report(std::vector<std::string>& warnings) const;

 private:
  std::string file_;
  std::size_t wrong_count_ = 0;
  std::size_t skipped_count_ = 0;
  std::string wrong_;
  std::string skipped_;
};

/// Returns the name with '-' in place of characters that a name must not have, and short enough for an ending that
/// makes it distinct.
[[nodiscard]] std::string accepted_name(std::string_view name);
/// Removes the first line from `text`, and returns it without line feed and carriage return.
[[nodiscard]] std::string_view next_line(std::string_view& text);
/// Returns `text` without spaces and tabs at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// Removes the first word from `text`, with the spaces and tabs before it, and returns it; empty at the end.
[[nodiscard]] std::string_view next_word(std::string_view& text);

}  // namespace tributary::manager
