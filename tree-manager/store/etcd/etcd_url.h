#pragma once
// The text that names an etcd and the prefix of the keys in it.
#include <string_view>

#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {

/// Reads "etcd://host[:port],host[:port]...[/prefix]", or "etcds://..." for an etcd that speaks TLS; without a port,
/// the port is 2379; without a prefix, the prefix is "/tributary". Errc::bad_config says what is wrong.
[[nodiscard]] Result<EtcdSettings> parse_etcd_url(std::string_view text);
/// Returns whether this URL names an etcd that speaks TLS.
[[nodiscard]] bool is_etcd_with_tls(std::string_view text) noexcept;

}  // namespace tributary::manager
