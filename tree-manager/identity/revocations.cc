#include "tree-manager/identity/revocations.h"

#include <nlohmann/json.hpp>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::manager {

using nlohmann::json;

Result<Revocations> Revocations::parse(std::string_view text) {
  const auto corrupt = [] { return fail(Errc::corrupt, "the manager's store holds no list of revoked tokens"); };
  Revocations revoked;
  if (text.empty()) return revoked;
  const json from = json_or_discarded(text);
  if (!from.is_object() || from.size() > kRevokedMax) return corrupt();
  for (const auto& [id, until] : from.items()) {
    if (!is_name(id) || !until.is_number_integer()) return corrupt();
    revoked.until_[id] = until.get<std::int64_t>();
  }
  return revoked;
}

std::string Revocations::text() const {
  return json(until_).dump(-1, ' ', false, json::error_handler_t::replace);
}

Status Revocations::add(const std::string& id, std::int64_t until, std::int64_t now_s) {
  std::erase_if(until_, [&](const auto& one) { return one.second <= now_s; });
  if (until_.size() >= kRevokedMax && !until_.contains(id)) {
    return fail(Errc::retry, "the manager remembers 65536 revoked tokens already, its limit; change the key instead");
  }
  std::int64_t& known = until_[id];
  known = std::max(known, until);
  return {};
}

}  // namespace tributary::manager
