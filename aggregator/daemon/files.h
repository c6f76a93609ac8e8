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

/// Writes the whole file under another name and then renames it, so that nobody reads a part of it. Errc::io with the
/// reason.
[[nodiscard]] Status write_file(const std::string& path, const std::string& text, mode_t mode);

/// Returns the aggregator token; an empty one for an empty path. Errc::bad_config, with what to do, when the file
/// cannot be read, is empty, or has a mode that lets others use it.
[[nodiscard]] Result<std::string> read_token(const std::string& path);

/// The facts that the aggregator needs to verify tokens while the manager is down.
struct Identity {
  std::string name;  // this aggregator's, as the manager accepted it
  PublicKey manager_key{};
  // For sealed packets; both are set, or neither.
  std::optional<ExchangePublicKey> manager_exchange;
  std::optional<std::array<std::byte, kExchangeKeyBytes>> exchange_private;
  friend bool operator==(const Identity&, const Identity&) = default;
};
/// Returns nothing when there is no such file, or no path. Errc::bad_config when the file is broken, or others may
/// write it: whoever can change the key can sign tokens.
[[nodiscard]] Result<std::optional<Identity>> read_identity(const std::string& path);
[[nodiscard]] Status write_identity(const std::string& path, const Identity& identity);

}  // namespace tributary::aggregator
