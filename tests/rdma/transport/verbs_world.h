#pragma once
// A world on the RDMA devices of this machine: the server at the first address in RDMA_HOSTS, the client at the last.
#include <cstdlib>
#include <sstream>

#include "tests/unit/transport/real_world.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport::test {

inline std::vector<std::string> rdma_hosts() {
  const char* const named = std::getenv("RDMA_HOSTS");
  std::istringstream words(named == nullptr ? "" : named);
  std::vector<std::string> hosts;
  for (std::string host; words >> host;) hosts.push_back(host);
  return hosts;
}

class VerbsWorld : public RealWorld {
 public:
  explicit VerbsWorld(const VerbsSettings& settings)
      : RealWorld(rdma_hosts().at(0), kLimit, std::chrono::milliseconds(100)),
        server_(make(settings, host())),
        client_(make(settings, rdma_hosts().back())) {}
  Transport& server() override { return *server_; }
  Transport& client() override { return *client_; }

 private:
  static constexpr std::chrono::minutes kLimit{4};  // long enough for an emulated machine on a busy host
  static std::unique_ptr<VerbsTransport> make(VerbsSettings settings, const std::string& host) {
    settings.bind_address = host;
    return VerbsTransport::create(settings).value();
  }
  std::unique_ptr<VerbsTransport> server_;
  std::unique_ptr<VerbsTransport> client_;
};

}  // namespace tributary::transport::test
