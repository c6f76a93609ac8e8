#pragma once
// A manager that knows only aggregators, answers as the test says, and records the requests.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::aggregator::test {

class FakeManager {
 public:
  /// Serves on 127.0.0.1.
  FakeManager();
  ~FakeManager();
  FakeManager(const FakeManager&) = delete;
  FakeManager& operator=(const FakeManager&) = delete;

  [[nodiscard]] std::string url() const;
  /// stop() ends listening; start() listens again on the same port.
  void stop();
  void start();

  [[nodiscard]] const SigningKey& key() const { return *key_; }
  /// From now on this object acts as another manager that has taken over: it does not know the registrations, and has a
  /// new key.
  void replace();
  void set_draining(bool draining);
  void set_lease_seconds(std::uint32_t seconds);
  void forget_registrations();
  /// Denies registrations without this token.
  void want_token(const std::string& token);

  /// Returns the last registration that aggregator `name` sent; JSON null if it is not registered.
  [[nodiscard]] nlohmann::json registration_of(const std::string& name) const;
  [[nodiscard]] nlohmann::json last_load_of(const std::string& name) const;
  /// Returns the addresses that the aggregator's last renewal reported as dead; null if it reported none.
  [[nodiscard]] nlohmann::json last_down_of(const std::string& name) const;
  [[nodiscard]] std::uint64_t registrations() const;
  [[nodiscard]] std::uint64_t renewals() const;
  [[nodiscard]] std::vector<std::string> unregistered() const;

 private:
  struct Server;
  struct Known;
  struct Reply {
    unsigned status = 200;
    std::string body;
  };
  [[nodiscard]] Reply answer(const std::string& method, const std::string& path, const std::string& token,
                             const std::string& body);
  [[nodiscard]] Reply register_aggregator(const std::string& body);
  [[nodiscard]] Reply renew(const std::string& name, const std::string& body);

  mutable std::mutex mutex_;  // guards every member below except server_
  std::unique_ptr<SigningKey> key_;
  std::unique_ptr<ExchangeKey> exchange_;
  std::map<std::string, Known> known_;
  std::vector<std::string> unregistered_;
  std::string token_;
  std::uint64_t registrations_ = 0;
  std::uint64_t renewals_ = 0;
  std::uint32_t lease_seconds_ = 1;
  bool draining_ = false;
  std::uint16_t port_ = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace tributary::aggregator::test
