#pragma once
// The ids of revoked identity tokens. Each is kept until a time after which no token with this id can be valid.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::manager {

/// The name under which the store keeps the list.
inline constexpr const char* kRevokedTokensKey = "revoked_tokens";

/// One thread at a time may call it.
class Revocations {
 public:
  static constexpr std::size_t kRevokedMax = 65536;

  /// Reads a text that text() wrote; an empty text has no revocations. Errc::corrupt: any other text.
  [[nodiscard]] static Result<Revocations> parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  /// Adds a revocation, and forgets revocations whose time is over. Errc::retry: there is no room.
  [[nodiscard]] Status add(const std::string& id, std::int64_t until, std::int64_t now_s);
  [[nodiscard]] bool has(const std::string& id) const { return until_.contains(id); }
  [[nodiscard]] const std::map<std::string, std::int64_t>& all() const noexcept { return until_; }

 private:
  std::map<std::string, std::int64_t> until_;  // seconds since 1970-01-01 UTC
};

}  // namespace tributary::manager
