#include "tree-manager/identity/identity.h"

namespace tributary::manager {
namespace {

template <class Word, std::size_t kCount>
std::optional<Word> find(const std::array<Word, kCount>& words, std::string_view text) noexcept {
  for (const Word word : words) {
    if (to_string(word) == text) return word;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Role role) noexcept {
  switch (role) {
    case Role::administrator:
      return "administrator";
    case Role::operator_:
      return "operator";
    case Role::tenant:
      return "tenant";
    case Role::reader:
      return "reader";
    case Role::aggregator:
      return "aggregator";
  }
  return "none";
}

std::string_view to_string(Scope scope) noexcept {
  switch (scope) {
    case Scope::read:
      return "read";
    case Scope::groups:
      return "groups";
    case Scope::plan:
      return "plan";
    case Scope::aggregators:
      return "aggregators";
    case Scope::drain:
      return "drain";
    case Scope::topology:
      return "topology";
    case Scope::tokens:
      return "tokens";
    case Scope::tenants:
      return "tenants";
  }
  return "none";
}

std::optional<Role> role_from_string(std::string_view text) noexcept {
  return find(kRoles, text);
}

std::optional<Scope> scope_from_string(std::string_view text) noexcept {
  return find(kScopes, text);
}

std::string to_string(Roles roles, std::string_view between) {
  std::string text;
  for (const Role role : kRoles) {
    if (!roles.has(role)) continue;
    if (!text.empty()) text += between;
    text += to_string(role);
  }
  return text;
}

}  // namespace tributary::manager
