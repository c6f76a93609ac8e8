// Answers of a manager, or of a process in its place, to ranks, aggregators and the command line: any bytes over HTTP,
// in pieces, or any body behind a correct head. The client must return a meaningful answer or an error.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>

#include "tributary/manager_client/manager_client.h"

using namespace tributary;
using namespace tributary::manager_client;

namespace {

/// Answers every request with the same bytes, cut in two, and closes.
class Answering {
 public:
  Answering() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, any, length) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, any, &length) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    std::thread([this] {
      for (;;) {
        if (const int socket = ::accept(listener_, nullptr, nullptr); socket >= 0) answer(socket);
      }
    }).detach();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  void say(std::string bytes, std::size_t cut) {
    const std::lock_guard lock(mutex_);
    cut_ = std::min(cut, bytes.size());
    bytes_ = std::move(bytes);
  }

 private:
  void answer(int socket) {
    hear(socket);
    {
      const std::lock_guard lock(mutex_);
      const std::string_view all(bytes_);
      for (const std::string_view part : {all.substr(0, cut_), all.substr(cut_)}) {
        static_cast<void>(::send(socket, part.data(), part.size(), MSG_NOSIGNAL));
      }
    }
    ::shutdown(socket, SHUT_WR);
    std::array<char, 256> rest{};
    while (::recv(socket, rest.data(), rest.size(), 0) > 0) {
    }
    ::close(socket);
  }
  /// Reads the whole request: closing a socket with unread bytes would cut off the answer.
  static void hear(int socket) {
    std::string request;
    std::array<char, 4096> piece{};
    for (std::size_t wanted = SIZE_MAX; request.size() < wanted;) {
      const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
      if (got <= 0) return;
      request.append(piece.data(), static_cast<std::size_t>(got));
      const std::size_t head = request.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      constexpr std::string_view kLength = "Content-Length: ";
      std::size_t body = 0;
      if (const std::size_t at = request.find(kLength); at < head)
        std::from_chars(request.data() + at + kLength.size(), request.data() + head, body);
      wanted = head + 4 + body;
    }
  }

  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port_ = 0;
  std::mutex mutex_;  // guards all members below
  std::string bytes_;
  std::size_t cut_ = 0;
};

struct Ends {
  Answering manager;
  ManagerClient client = std::move(*ManagerClient::create(
      {.url = "http://127.0.0.1:" + std::to_string(manager.port()), .token = "token", .answer_bytes_max = 8192}));
};

void check(const Result<GroupAnswer>& answer) {
  if (!answer) return;
  const GroupDescriptor& told = answer->descriptor;
  if (!group_descriptor_from_json(tributary::to_json(told))) std::abort();
  for (const LaneDescriptor& lane : told.lanes) {
    if (lane.window == 0 || lane.window > kWindowMax || lane.segment_bytes > kSegmentBytesMax) std::abort();
    if (lane.weight == 0 || lane.weight > kLaneWeightMax) std::abort();
  }
}

}  // namespace

// The input has the number of the call, the kind of the answer, and the place where the answer is cut (2 bytes); then
// the answer, or its body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Ends& ends = *new Ends;  // its thread runs until the end of the process
  constexpr std::array<unsigned, 8> kStatuses{200, 201, 204, 401, 404, 409, 503, 100};
  if (size < 4) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const bool whole = (data[1] & 8U) != 0;
  ends.manager.say(whole ? text
                         : "HTTP/1.1 " + std::to_string(kStatuses[data[1] % 8]) +
                               " said\r\nContent-Type: application/json\r\nContent-Length: " +
                               std::to_string(text.size()) + "\r\n\r\n" + text,
                   data[2] | std::size_t{data[3]} << 8U);
  switch (data[0] % 8) {
    case 0:
      if (const auto answer = ends.client.register_aggregator({.name = "a", .host = "h", .data = {"h", 1}});
          answer && answer->name.size() > 8192) {
        std::abort();
      }
      break;
    case 1:
      static_cast<void>(ends.client.renew_aggregator("a", 1, {}));
      break;
    case 2:
      check(ends.client.request_group({.job = "job", .hosts = {"h1", "h2"}}));
      if (const auto page = ends.client.group_places(1, 1, 0, 1); page && page->lanes.at(0).size() != 1) std::abort();
      break;
    case 3:
      check(ends.client.rebuild_group(1, 1, {"a"}));
      break;
    case 4:
      if (const auto lease =
              size % 2 == 0 ? ends.client.renew_group(1, true) : ends.client.adopt_group(1, "AAAA", {"h1"});
          lease && !lease->known && lease->rebuild_advised)
        std::abort();
      break;
    case 5:
      static_cast<void>(ends.client.delete_group(1));
      break;
    case 6:
      static_cast<void>(ends.client.unregister_aggregator("a"));
      break;
    default:
      if (const auto answer = ends.client.get("/v1/trees")) static_cast<void>(answer->dump().size());
  }
  return 0;
}
