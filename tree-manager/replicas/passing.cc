#include "tree-manager/replicas/passing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "service-kit/http/percent.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

using service::HttpHead;
using service::HttpReply;

constexpr service::HttpServerWords kLeaderWords{
    .name = "the manager that leads",
    .advice = "check that the setting advertise of that manager names an address that this one reaches",
    .kind = "manager URL",
    .default_port = "7470",
};
constexpr std::string_view kSealPurpose = "tributary passed on 1";
constexpr std::uint64_t kAnswerMax = 256U << 20;

}  // namespace

Forwarder::Forwarder(const SigningKey& key) : key_(hmac_sha256(key.seed(), std::as_bytes(std::span(kSealPurpose)))) {}

std::string Forwarder::seal_of(const std::string& address, const HttpHead& head) const {
  const std::string text =
      address + '\n' + head.method + ' ' + head.path + '?' + head.query + '\n' + head.authorization;
  return to_hex(hmac_sha256(key_, std::as_bytes(std::span(text))));
}

std::string Forwarder::header_for(const HttpHead& head) const {
  return head.remote_address + " " + seal_of(head.remote_address, head);
}

std::optional<std::string> Forwarder::first_address(const HttpHead& head) const {
  const std::size_t space = head.passed_on.find(' ');
  if (space == std::string::npos) return std::nullopt;
  std::string address = head.passed_on.substr(0, space);
  const std::string seal = seal_of(address, head);
  const std::string shown = head.passed_on.substr(space + 1);
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  if (shown.size() != seal.size() || !same_bytes(bytes(shown), bytes(seal))) return std::nullopt;
  return address;
}

Passing::Passing(PassingSettings settings, Forwarder forwarder)
    : settings_(std::move(settings)), forwarder_(std::move(forwarder)) {}
Passing::~Passing() = default;

std::shared_ptr<service::HttpClient> Passing::take(bool read) {
  const std::lock_guard lock(mutex_);
  if (busy_.size() >= settings_.requests_max || (read && reads_ >= settings_.requests_max / 2)) return nullptr;
  if (read) ++reads_;
  auto client =
      idle_.empty() ? std::make_shared<service::HttpClient>(kLeaderWords, settings_.tls) : std::move(idle_.back());
  if (!idle_.empty()) idle_.pop_back();
  busy_.push_back(client);
  return client;
}

void Passing::give_back(const std::shared_ptr<service::HttpClient>& client, bool read, bool usable) {
  const std::lock_guard lock(mutex_);
  TRIBUTARY_ASSERT(!read || reads_ != 0, "a read ends, and {} requests are under way", busy_.size());
  if (read) --reads_;
  std::erase(busy_, client);
  if (usable) idle_.push_back(client);
}

std::optional<HttpReply> Passing::pass(const std::string& leader, const HttpHead& head, const std::string& body,
                                       bool read) {
  const auto url = service::parse_url(leader, kLeaderWords);
  if (!url) {
    spdlog::error("requests cannot be passed on: {}", url.error().message);
    return std::nullopt;
  }
  const auto client = take(read);
  if (!client) return std::nullopt;
  const auto answer = client->run(
      *url, {.method = head.method,
             .target = service::percent_encode(head.path, "/:") + (head.query.empty() ? "" : "?" + head.query),
             .authorization = head.authorization,
             .body = body,
             .connect_limit = settings_.connect_limit,
             .request_limit = settings_.request_limit,
             .answer_bytes_max = kAnswerMax,
             .keep_alive = true,
             .extra_name = "Tributary-Passed-On",
             .extra_value = forwarder_.header_for(head)});
  // A cancelled client returns no further answers.
  give_back(client, read, answer || answer.error().code != Errc::aborted);
  if (!answer) {
    complain(head, answer.error());
    return std::nullopt;
  }
  HttpReply reply{.status = answer->status, .content_type = answer->content_type, .body = answer->body, .headers = {}};
  if (answer->status == 503 || answer->status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

/// Logs only the first failure with each leader; the metrics count all failures.
void Passing::complain(const HttpHead& head, const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(complained_, true)) return;
  }
  spdlog::warn("{} {} was not passed on: {}", head.method, head.path, error.message);
}

void Passing::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  complained_ = false;
  for (const auto& client : busy_) client->cancel();
  idle_.clear();
}

}  // namespace tributary::manager
