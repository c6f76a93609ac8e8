#pragma once
// One table says which roles may call which route. Only this table decides for the REST interface; docs/security.md
// shows it, and a test tries each cell.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity.h"

namespace tributary::manager {

/// The owner that the object in a path must have.
enum class Owned : std::uint8_t {
  nothing,
  group,       // a group of the caller's tenant; an administrator may delete any group
  seen_group,  // a group that the caller may see
  aggregator,  // the caller's own aggregator, or one without an owner; any for an administrator
};

struct AccessRow {
  std::string_view method;
  std::string_view pattern;
  bool open;                   // every caller may call the route
  bool read;                   // every caller may call the route, unless the setting asks for a token
  std::optional<Scope> scope;  // scope that the identity must have; none: no scope is needed
  Roles roles;                 // the identity must have one of these roles
  Owned owned = Owned::nothing;
  bool own = false;  // each manager answers for itself, whoever leads
};

[[nodiscard]] std::span<const AccessRow> access_table() noexcept;
/// Returns the route's row; nullptr: there is none.
[[nodiscard]] const AccessRow* access_row(std::string_view method, std::string_view pattern) noexcept;
/// Returns a sentence with the reason why the identity may not call the route; empty if it may.
[[nodiscard]] std::string why_denied(const AccessRow& row, const Identity& identity);

}  // namespace tributary::manager
