#pragma once
// The manager's service over HTTP. A helper thread sends the requests, so the communicator's own thread never waits for
// the manager.
#include <functional>
#include <memory>
#include <string>

#include "client/recovery/group_service.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

struct HttpGroupServiceSettings {
  std::string url;    // URL such as "http://host:7470" or "https://host:7470"
  std::string token;  // the job's token; may be empty
  service::TlsFiles tls{};
  std::function<std::string()> fresh_token{};  // see manager_client::ManagerSettings; the helper thread calls it
};

/// The service. The communicator's thread calls it, and gets the answers through Transport::post; only this class knows
/// the helper thread. The destructor cancels a request under way, gives back the groups for which release() was called,
/// and ends within about two seconds even if the manager does not answer. No answer comes after it.
class HttpGroupService final : public GroupService {
 public:
  /// Makes the service. Errc::bad_config: the text is no URL, or a file of TLS is wrong.
  [[nodiscard]] static Result<std::unique_ptr<HttpGroupService>> create(HttpGroupServiceSettings settings,
                                                                        transport::Transport& transport);
  ~HttpGroupService() override;

  void request(const GroupRequest& request, DescriptorAnswer answer) override;
  void places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
              PageAnswer answer) override;
  void rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed, bool in_use,
               DescriptorAnswer answer) override;
  void renew(std::uint64_t group, const GroupTraffic& traffic, std::function<void(Result<GroupLease>)> answer) override;
  void release(std::uint64_t group, const std::vector<std::string>& lost) override;

 private:
  struct Impl;
  explicit HttpGroupService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::client
