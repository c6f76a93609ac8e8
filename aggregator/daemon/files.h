#pragma once
// The few small files of the daemon: the secret for the manager, the manager's public key, the ready file.
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// Written whole under another name and then renamed, so that nobody ever reads a part of it. Errc::io with the reason.
[[nodiscard]] Status write_file(const std::string& path, const std::string& text, mode_t mode);

/// The secret that the manager asks of aggregators; an empty path gives an empty one. Errc::bad_config when it cannot
/// be read, is empty, or can be used by others, with what to do.
[[nodiscard]] Result<std::string> read_token(const std::string& path);

/// The facts by which tokens are verified while the manager is down.
struct Identity {
  std::string name;  // of this aggregator, as the manager accepted it
  PublicKey manager_key{};
  // For sealed packets; both or neither.
  std::optional<ExchangePublicKey> manager_exchange;
  std::optional<std::array<std::byte, kExchangeKeyBytes>> exchange_private;
  friend bool operator==(const Identity&, const Identity&) = default;
};
/// None when there is no such file, or no path. Errc::bad_config when it is broken, or others may write it: whoever can
/// change the key can sign tokens.
[[nodiscard]] Result<std::optional<Identity>> read_identity(const std::string& path);
[[nodiscard]] Status write_identity(const std::string& path, const Identity& identity);

}  // namespace tributary::aggregator
