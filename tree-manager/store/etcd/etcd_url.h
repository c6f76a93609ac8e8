#pragma once
// The text that names an etcd and the keys there.
#include <string_view>

#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {

/// Reads "etcd://host[:port],host[:port]...[/prefix]"; the port is 2379 and the prefix "/tributary" unless they are
/// there. Errc::bad_config says what is wrong.
[[nodiscard]] Result<EtcdSettings> parse_etcd_url(std::string_view text);

}  // namespace tributary::manager
