#include "service-kit/http/query.h"

#include <algorithm>

#include "service-kit/http/percent.h"

namespace tributary::service {

std::optional<QueryValues> read_query(std::string_view query) {
  QueryValues values;
  for (bool more = !query.empty(); more;) {
    const std::string_view part = query.substr(0, query.find('&'));
    more = part.size() < query.size();  // another part follows, which may be empty
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    auto name = percent_decode(part.substr(0, equals));
    auto value = percent_decode(part.substr(equals + 1));
    if (!name || !value || !values.emplace(std::move(*name), std::move(*value)).second) return std::nullopt;
  }
  return values;
}

std::optional<std::string> value_of(const QueryValues& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tributary::service
