// The header with which one manager tells another which caller sent a request. A stranger's text is never believed. A
// manager's statement comes out again, unless a byte of it or of the request has changed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/fuzz/transport/script.h"
#include "tests/unit/manager/cluster_fixture.h"
#include "tree-manager/replicas/passing.h"

using namespace tributary;
using namespace tributary::manager;
using tributary::fuzz::Script;

namespace {

/// Takes up to 255 bytes for a name in a certificate; such names hold no line ends.
std::string name_from(Script& script) {
  std::string name;
  for (int bytes = script.byte(); bytes > 0; --bytes) {
    const char next = static_cast<char>(script.byte());
    name += next == '\n' ? ' ' : next;
  }
  return name;
}

service::HttpHead head_from(Script& script) {
  service::HttpHead head{.method = "PUT",
                         .path = "/v1/" + name_from(script),
                         .query = name_from(script),
                         .authorization = script.byte() % 2 == 0 ? "" : "Bearer " + name_from(script),
                         .remote_address = "192.0.2.7"};
  if (script.byte() % 2 == 0) return head;
  service::Certificate shown{.subject = "CN=" + name_from(script)};
  for (int names = script.byte() % 4; names > 0; --names) shown.names.push_back(name_from(script));
  head.certificate = std::make_shared<const service::Certificate>(std::move(shown));
  return head;
}

void stated_words_come_out_again(const Forwarder& forwarder, Script script) {
  service::HttpHead head = head_from(script);
  const std::string body = name_from(script);
  const auto stated = forwarder.header_for(head, body);
  if (!stated) return;
  const auto proof = head.certificate;
  head.passed_on = *stated;
  head.certificate = nullptr;
  head.remote_address = "198.51.100.1";
  const auto sender = forwarder.first_sender(head);
  if (!sender || sender->address != "192.0.2.7" || !forwarder.is_body_of(*sender, body)) std::abort();
  if (forwarder.is_body_of(*sender, body + "x")) std::abort();
  const bool by_certificate = proof != nullptr && head.authorization.empty();
  if ((sender->certificate != nullptr) != by_certificate) std::abort();
  if (by_certificate && sender->certificate->subject != proof->subject) std::abort();

  const auto by = static_cast<char>(script.byte() | 1);
  std::array<std::string*, 4> parts{&head.passed_on, &head.path, &head.query, &head.authorization};
  std::string& changed = *parts[script.byte() % parts.size()];
  if (changed.empty()) return;
  char& byte = changed[script.number(2) % changed.size()];
  byte = static_cast<char>(byte ^ by);
  if (forwarder.first_sender(head)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ManualClock clock;
  static const SigningKey key = *SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{});
  static const LiveKey live(key);
  static const Forwarder forwarder(live, clock);
  const service::HttpHead stranger{.method = "GET",
                                   .path = "/v1/groups",
                                   .query = {},
                                   .authorization = {},
                                   .remote_address = "192.0.2.7",
                                   .passed_on = std::string(reinterpret_cast<const char*>(data), size)};
  if (forwarder.first_sender(stranger)) std::abort();
  stated_words_come_out_again(forwarder, Script({data, size}));
  return 0;
}
