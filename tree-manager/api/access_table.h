#pragma once
// One table says which roles may call which route. The REST interface asks it and nothing else; docs/security.md shows
// it, and a test tries each cell.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity.h"

namespace tributary::manager {

/// The owner that a thing must have that a path names.
enum class Owned : std::uint8_t {
  nothing,
  group,       // the caller's tenant's; an administrator may delete any
  seen_group,  // a group that the caller may see
  aggregator,  // the caller's own, or nobody's; an administrator's is any
};

struct AccessRow {
  std::string_view method;
  std::string_view pattern;
  bool open;                   // everybody may
  bool read;                   // everybody may, unless the setting asks for a token
  std::optional<Scope> scope;  // that the identity must have; none: every identity has it
  Roles roles;                 // one of these
  Owned owned = Owned::nothing;
};

[[nodiscard]] std::span<const AccessRow> access_table() noexcept;
/// nullptr: there is no such row.
[[nodiscard]] const AccessRow* access_row(std::string_view method, std::string_view pattern) noexcept;
/// Says in a sentence why the identity may not; empty if it may.
[[nodiscard]] std::string why_denied(const AccessRow& row, const Identity& identity);

}  // namespace tributary::manager
