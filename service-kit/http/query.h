#pragma once
// Reads the query of a request's target.
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::service {

/// The decoded values of a query such as "a=1&b=x%20y", by name.
using QueryValues = std::map<std::string, std::string, std::less<>>;

/// Returns the values of an undecoded query; an empty query has none. nullopt: a part has no '=', a name stands twice,
/// or a percent sign stands before something else than two hexadecimal digits.
[[nodiscard]] std::optional<QueryValues> read_query(std::string_view query);

/// Returns the value of `name`; nullopt: the query has none.
[[nodiscard]] std::optional<std::string> value_of(const QueryValues& values, std::string_view name);

}  // namespace tributary::service
