#pragma once
// The small files of the daemon: its aggregator token, the manager's public key, the ready file.
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// Writes the whole file under another name and then renames it, so that no process reads a part of it. Errc::io has
/// the reason.
[[nodiscard]] Status write_file(const std::string& path, const std::string& text, mode_t mode);

/// Returns the aggregator token; an empty token for an empty path. Errc::bad_config, with advice, if the file cannot be
/// read, is empty, or has a mode that lets other users use it.
[[nodiscard]] Result<std::string> read_token(const std::string& path);

/// The data with which the aggregator verifies tokens while the manager is down.
struct Identity {
  std::string name;  // this aggregator's name, as the manager accepted it
  PublicKey manager_key{};
  // Keys for sealed packets; both are set, or both are empty.
  std::optional<ExchangePublicKey> manager_exchange;
  std::optional<std::array<std::byte, kExchangeKeyBytes>> exchange_private;
  friend bool operator==(const Identity&, const Identity&) = default;
};
/// Returns an empty result if there is no such file, or no path. Errc::bad_config if the file is broken, or other users
/// may write it: a user who can change the key can sign tokens.
[[nodiscard]] Result<std::optional<Identity>> read_identity(const std::string& path);
[[nodiscard]] Status write_identity(const std::string& path, const Identity& identity);

}  // namespace tributary::aggregator
