#include "client/api/transports.h"

#include <algorithm>

#include "tributary/transport/tcp.h"

namespace tributary::client {

Result<std::string> choose_transport(const std::vector<std::string>& wanted) {
  std::string tcp = "tcp";
  if (wanted.empty() || std::ranges::find(wanted, tcp) != wanted.end()) return tcp;
  std::string list;
  for (const std::string& name : wanted) list += (list.empty() ? "" : ", ") + name;
  return fail(Errc::unsupported, "none of the transports in TRIBUTARY_TRANSPORT (" + list +
                                     ") is built into this libtributary; it has tcp");
}

std::unique_ptr<transport::Transport> make_transport() {
  return std::make_unique<transport::TcpTransport>();
}

}  // namespace tributary::client
