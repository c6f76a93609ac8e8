#include "client/cli/nccl_check/link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace tributary::cli::nccl_check {
namespace {

using Handle = std::array<std::byte, abi::kHandleBytes>;
constexpr std::chrono::seconds kLimit{60};

/// The listeners of one rank: it has one for each incoming connection.
struct Listening {
  std::vector<void*> comms;
  std::vector<Handle> handles;
};

Listening listen_for_all(Session& session, std::size_t count) {
  Listening all{std::vector<void*>(count), std::vector<Handle>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    require_success(session.net().listen(session.net_context(), 0, all.handles[i].data(), &all.comms[i]), "net listen");
  }
  return all;
}

/// Returns the index of the listener of rank `from` for connection `number` to rank `to`.
std::size_t place(int from, int to, int number, int connections) {
  return static_cast<std::size_t>(to > from ? to - 1 : to) * static_cast<std::size_t>(connections) +
         static_cast<std::size_t>(number);
}

}  // namespace

std::vector<Link> make_links(Session& session, int connections) {
  const int rank = session.rank(), ranks = session.ranks();
  const auto count = static_cast<std::size_t>(ranks - 1) * static_cast<std::size_t>(connections);
  Listening own;
  session.service().run([&] { own = listen_for_all(session, count); });
  auto bytes = session.bootstrap().all_gather(std::as_bytes(std::span(own.handles)));
  std::vector<Link> links;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int number = 0; number < connections && peer != rank; ++number)
      links.push_back({peer, number, nullptr, nullptr});
  }
  session.service().run([&] {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    for (bool missing = true; missing;) {
      missing = false;
      for (Link& link : links) {
        const std::size_t there =
            static_cast<std::size_t>(link.peer) * count + place(link.peer, rank, link.number, connections);
        if (link.send_comm == nullptr) {
          require_success(session.net().connect(session.net_context(), 0, bytes.data() + there * abi::kHandleBytes,
                                                &link.send_comm),
                          "net connect");
        }
        if (link.receive_comm == nullptr) {
          void* listening = own.comms[place(rank, link.peer, link.number, connections)];
          require_success(session.net().accept(listening, &link.receive_comm), "net accept");
        }
        missing = missing || link.send_comm == nullptr || link.receive_comm == nullptr;
      }
      require(std::chrono::steady_clock::now() < deadline, "the connections were not made within a minute");
      std::this_thread::yield();
    }
    for (void* listening : own.comms) require_success(session.net().close_listen(listening), "net closeListen");
  });
  return links;
}

void close_links(Session& session, std::vector<Link>& links) {
  if (session.rank() % 2 == 1) std::ranges::reverse(links);
  session.service().run([&] {
    for (const Link& link : links) {
      if (session.rank() % 2 == 1) require_success(session.net().close_send(link.send_comm), "closeSend");
      require_success(session.net().close_receive(link.receive_comm), "closeRecv");
      if (session.rank() % 2 == 0) require_success(session.net().close_send(link.send_comm), "closeSend");
    }
  });
}

}  // namespace tributary::cli::nccl_check
