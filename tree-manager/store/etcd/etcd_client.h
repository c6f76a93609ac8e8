#pragma once
// Calls of etcd 3 over its JSON gateway: HTTP or HTTPS, with keys and values in base64.
#include <chrono>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "service-kit/http/http_client.h"

namespace tributary::manager {

struct EtcdSettings {
  std::vector<std::string> endpoints;  // such as "http://host:2379" or "https://host:2379"; all of one etcd cluster
  std::string prefix = "/tributary/";  // prefix of all keys
  std::string user;                    // empty: etcd asks for no user
  std::string password;
  std::chrono::milliseconds attempt_limit{1000};  // limit for one call at one endpoint
  service::TlsFiles tls{};                        // for https endpoints
};

/// Any thread may call it. A client makes one call at a time, so each user has its own client.
class EtcdClient {
 public:
  /// Makes a client, but no connection yet. Errc::bad_config: an endpoint is no URL, or a file of TLS is wrong.
  [[nodiscard]] static Result<std::unique_ptr<EtcdClient>> create(const EtcdSettings& settings);
  /// Reads the endpoints' URLs. Errc::bad_config: one is no URL, or there is none.
  [[nodiscard]] static Result<std::vector<service::HttpUrl>> urls_of(const EtcdSettings& settings);
  ~EtcdClient();

  /// Makes one call, at each endpoint in turn until one answers or `limit` has passed. Errors: unreachable (no endpoint
  /// has given a good answer: a change may have been made or not, or may be made later), denied (user or password),
  /// exhausted (etcd has no room), peer_gone (there is no such lease), io (etcd refuses; its sentence has the reason).
  [[nodiscard]] Result<nlohmann::json> call(const std::string& path, const nlohmann::json& body,
                                            std::chrono::milliseconds limit);
  /// Returns a key with the prefix, in base64.
  [[nodiscard]] std::string key(std::string_view name) const;
  /// Returns the first key behind all keys that begin with the prefix and `name`, in base64.
  [[nodiscard]] std::string end_of(std::string_view name) const;
  [[nodiscard]] const std::string& prefix() const noexcept { return settings_.prefix; }
  void cancel() noexcept { http_.cancel(); }

 private:
  EtcdClient(EtcdSettings settings, std::vector<service::HttpUrl> urls, std::shared_ptr<service::TlsContext> tls);
  /// Sets `unsure` if the server may have handled the request twice: then its error is not the first one's.
  [[nodiscard]] Result<nlohmann::json> ask(const std::string& path, const std::string& body,
                                           std::chrono::milliseconds limit, bool& unsure);
  [[nodiscard]] Status log_in(std::chrono::milliseconds limit);
  [[nodiscard]] Result<nlohmann::json> understand(const std::string& path, const service::HttpAnswer& answer) const;

  const EtcdSettings settings_;
  const std::vector<service::HttpUrl> urls_;
  std::mutex mutex_;         // guards the members below
  std::size_t current_ = 0;  // endpoint that answered last
  std::string login_;        // the user's token; empty: none yet
  service::HttpClient http_;
};

/// Reads a whole number. etcd writes whole numbers as texts, and leaves out zeros.
[[nodiscard]] std::uint64_t etcd_number(const nlohmann::json& object, const char* name);
[[nodiscard]] std::string to_base64_text(std::string_view text);
/// Returns the text in the member of this name; empty if there is none.
[[nodiscard]] Result<std::string> etcd_text(const nlohmann::json& object, const char* name);

}  // namespace tributary::manager
