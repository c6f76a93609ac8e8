#pragma once
// An identity is a proved name with roles. Roles give its rights, scopes reduce them, and tenant and job name the
// groups that it may change.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::manager {

enum class Role : std::uint8_t {
  administrator,  // all rights, except changes of other tenants' groups
  operator_,      // drains aggregators, puts the topology, issues and revokes tokens of lesser roles
  tenant,         // changes its own groups
  reader,         // reads
  aggregator,     // changes its own registration
};
inline constexpr std::array kRoles{Role::administrator, Role::operator_, Role::tenant, Role::reader, Role::aggregator};
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_from_string(std::string_view text) noexcept;

/// The kind of objects that a route is about.
enum class Scope : std::uint8_t { read, groups, plan, aggregators, drain, topology, tokens, tenants };
inline constexpr std::array kScopes{Scope::read,  Scope::groups,   Scope::plan,   Scope::aggregators,
                                    Scope::drain, Scope::topology, Scope::tokens, Scope::tenants};
[[nodiscard]] std::string_view to_string(Scope scope) noexcept;
[[nodiscard]] std::optional<Scope> scope_from_string(std::string_view text) noexcept;

/// A set of roles or of scopes.
template <class Word>
class SetOf {
 public:
  constexpr SetOf() = default;
  template <class... Words>
  constexpr explicit SetOf(Words... words) : bits_(static_cast<std::uint8_t>((0U | ... | bit(words)))) {}
  [[nodiscard]] static constexpr SetOf all() {
    SetOf set;
    set.bits_ = 0xff;
    return set;
  }
  constexpr void add(Word word) noexcept { bits_ = static_cast<std::uint8_t>(bits_ | bit(word)); }
  [[nodiscard]] constexpr bool has(Word word) const noexcept { return (bits_ & bit(word)) != 0; }
  [[nodiscard]] constexpr bool meets(SetOf other) const noexcept { return (bits_ & other.bits_) != 0; }
  friend constexpr bool operator==(SetOf, SetOf) = default;

 private:
  static constexpr unsigned bit(Word word) noexcept { return 1U << static_cast<unsigned>(word); }
  std::uint8_t bits_ = 0;
};
using Roles = SetOf<Role>;
using Scopes = SetOf<Scope>;

/// Returns a text such as "tenant" or "operator and aggregator".
[[nodiscard]] std::string to_string(Roles roles, std::string_view between = " and ");

struct Identity {
  std::string name;
  Roles roles;
  Scopes scopes = Scopes::all();
  std::string tenant{};     // empty: no tenant, or the holders of the job token
  std::string job{};        // may change only groups of this job; empty: of all the tenant's jobs
  std::string token_id{};   // id of the identity token; empty: the identity was proved otherwise
  bool old_secret = false;  // proved by a secret that all callers of its kind share
};

}  // namespace tributary::manager
