#include "tributary/transport/verbs_beside_tcp.h"

#include <algorithm>
#include <limits>

#include "transport/tcp/tcp_core.h"
#include "transport/verbs/wire.h"

namespace tributary::transport {

Result<std::unique_ptr<VerbsBesideTcp>> VerbsBesideTcp::create(const VerbsSettings& verbs, const TcpSettings& tcp) {
  auto made = VerbsTransport::create(verbs);
  if (!made) return std::unexpected(made.error());
  const auto core = std::make_shared<TcpCore>(tcp);
  (*made)->drive(core);
  // The receiver fetches longer payloads, and reports the end of the fetch after on_frame().
  const auto eager = static_cast<std::uint32_t>(verbs::message_bytes_for(
      std::clamp<std::uint32_t>(verbs.eager_bytes, sizeof(verbs::RemotePayload), verbs::kEagerBytesMax)));
  return std::unique_ptr<VerbsBesideTcp>(
      new VerbsBesideTcp(std::move(*made), std::make_unique<TcpTransport>(core), eager));
}

}  // namespace tributary::transport
