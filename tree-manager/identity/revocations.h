#pragma once
// The identity tokens that were revoked, by id, until the time after which no token with that id can be good.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::manager {

/// One thread at a time.
class Revocations {
 public:
  static constexpr std::size_t kRevokedMax = 65536;

  /// Reads what text() wrote; an empty text holds none. Errc::corrupt: something else.
  [[nodiscard]] static Result<Revocations> parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  /// Forgets those whose time is over. Errc::retry: there is no room.
  [[nodiscard]] Status add(const std::string& id, std::int64_t until, std::int64_t now_s);
  [[nodiscard]] bool has(const std::string& id) const { return until_.contains(id); }
  [[nodiscard]] const std::map<std::string, std::int64_t>& all() const noexcept { return until_; }

 private:
  std::map<std::string, std::int64_t> until_;  // seconds since 1970-01-01 UTC
};

}  // namespace tributary::manager
