#include "client/collectives/local/meeting_place.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <tuple>

#include "client/collectives/local/patience.h"

namespace tributary::client::local {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kProofBytes = 64;              // SHA-256 in hexadecimal digits
constexpr std::size_t kDescriptorsPerMessage = 128;  // Linux allows 253
constexpr std::uint32_t kVersion = 2;
// A limit shorter than an absence: while rank 0 waits for a hello, it does not look at the clock of the meeting.
constexpr Milliseconds kHelloLimit{500};

struct Hello {
  std::uint32_t version;
  std::uint32_t rank;
  std::array<char, kProofBytes> proof;
};
struct Offer {
  std::uint32_t version;
  std::uint32_t ranks;
  std::uint64_t note_bytes, chunk_bytes, depth, bytes;
};
enum class Word : std::uint32_t { mapped = 1, go = 2 };

std::unexpected<Error> failed(const std::string& what, int error = errno) {
  return fail(Errc::io, "the ranks of this host did not meet: " + what + ": " + std::strerror(error));
}

std::unexpected<Error> strange(const std::string& what) {
  return fail(Errc::denied, "the ranks of this host did not meet: " + what);
}

FileDescriptor own_process() {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
}

// Derives the socket's name. The name is public, but only a process with the group's secret can compute it beforehand.
socklen_t make_address(const Secret& secret, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = "tributary-" + proof(secret, "", "local-name", 0).substr(0, 48);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

FileDescriptor make_socket() {
  return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

Status wait_for(int descriptor, Patience& patience) {
  while (true) {
    const auto left = std::chrono::ceil<Milliseconds>(patience.left(std::chrono::steady_clock::now()));
    std::array<pollfd, 2> both{
        {{.fd = descriptor, .events = POLLIN, .revents = 0}, {.fd = patience.stop(), .events = POLLIN, .revents = 0}}};
    const int n = poll(both.data(), both.size(), static_cast<int>(std::min(left, Patience::kLook).count()));
    if (n > 0 && both[1].revents != 0) return fail(Errc::aborted, "the ranks of this host did not meet: called off");
    if (n > 0) return {};
    if (n == 0 && left == Milliseconds::zero())
      return fail(Errc::timed_out, "the ranks of this host did not meet: one of them did not come in time");
    if (n < 0 && errno != EINTR) return failed("poll");
  }
}

/// Sends one whole message over a SOCK_SEQPACKET socket, with file descriptors.
template <class T>
Status send(const FileDescriptor& to, const T& message, std::span<const int> descriptors = {}) {
  iovec data{.iov_base = const_cast<T*>(&message), .iov_len = sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsPerMessage)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (sendmsg(to.number(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message)) return {};
  return failed("sendmsg");
}

/// Receives one message, which must be one T and carry `expected` file descriptors.
template <class T>
Result<std::vector<FileDescriptor>> receive(const FileDescriptor& from, T& message, std::size_t expected,
                                            Patience& patience) {
  if (auto ok = wait_for(from.number(), patience); !ok) return std::unexpected(ok.error());
  iovec data{.iov_base = &message, .iov_len = sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsPerMessage)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t n = recvmsg(from.number(), &header, MSG_CMSG_CLOEXEC);
  if (n < 0) return failed("recvmsg");
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(c) + i * sizeof(int), sizeof number);
      descriptors.emplace_back(number);
    }
  }
  if (n != static_cast<ssize_t>(sizeof message) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      descriptors.size() != expected) {
    return strange(n == 0 ? "the other side has gone" : "it sent a message that does not belong to the meeting");
  }
  return descriptors;
}

/// Refuses a process of another user, which may know the name, and even the secret.
Status check_user(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return failed("SO_PEERCRED");
  if (peer.uid == geteuid()) return {};
  return strange("a process of user " + std::to_string(peer.uid) + " connected");
}

Status send_each(const FileDescriptor& to, std::span<const FileDescriptor> descriptors) {
  for (std::size_t first = 0; first < descriptors.size(); first += kDescriptorsPerMessage) {
    std::vector<int> numbers;
    for (std::size_t i = first; i < std::min(first + kDescriptorsPerMessage, descriptors.size()); ++i)
      numbers.push_back(descriptors[i].number());
    if (auto ok = send(to, kVersion, numbers); !ok) return ok;
  }
  return {};
}

Result<std::vector<FileDescriptor>> receive_each(const FileDescriptor& from, std::size_t count, Patience& patience) {
  std::vector<FileDescriptor> all;
  while (all.size() < count) {
    std::uint32_t version = 0;
    auto some = receive(from, version, std::min(kDescriptorsPerMessage, count - all.size()), patience);
    if (!some) return some;
    for (auto& one : *some) all.push_back(std::move(one));
  }
  return all;
}

Status send_all(const FileDescriptor& to, const Offer& offer, const Arena& arena,
                std::span<const FileDescriptor> processes, std::span<const FileDescriptor> inboxes) {
  const std::array memory{arena.descriptor()};
  if (auto ok = send(to, offer, memory); !ok) return ok;
  if (auto ok = send_each(to, processes); !ok) return ok;
  return send_each(to, inboxes);
}

Status hear(const FileDescriptor& from, Word expected, Patience& patience) {
  Word word{};
  if (auto got = receive(from, word, 0, patience); !got) return std::unexpected(got.error());
  if (word == expected) return {};
  return strange("a message came out of turn");
}

}  // namespace

std::string host_token() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat network{};
  if (!std::getline(in, boot) || boot.empty() || stat("/proc/self/ns/net", &network) != 0 || !own_process().open())
    return {};
  return boot + "/" + std::to_string(network.st_dev) + ":" + std::to_string(network.st_ino) + "/" +
         std::to_string(geteuid());
}

Result<MeetingPlace> MeetingPlace::open(const Secret& secret) {
  FileDescriptor listener = make_socket();
  if (!listener.open()) return failed("socket");
  sockaddr_un address;
  const socklen_t bytes = make_address(secret, address);
  if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return failed("bind");
  if (listen(listener.number(), SOMAXCONN) != 0) return failed("listen");
  return MeetingPlace(std::move(listener), secret);
}

Result<std::unique_ptr<LocalGroup>> MeetingPlace::gather(GroupSettings settings, Milliseconds limit, int stop) {
  Patience patience(limit, stop);
  auto arena = create_arena(settings);
  if (!arena) return std::unexpected(arena.error());
  std::vector<FileDescriptor> ranks(settings.ranks), processes(settings.ranks);
  Inboxes inboxes{.of = std::vector<FileDescriptor>(settings.ranks)};
  processes[0] = own_process();
  if (!processes[0].open()) return failed("pidfd_open");
  auto inbox = make_inbox();
  if (!inbox) return std::unexpected(inbox.error());
  std::tie(inboxes.own, inboxes.of[0]) = std::move(*inbox);
  for (std::uint32_t met = 1; met < settings.ranks;) {
    if (auto ok = wait_for(listener_.number(), patience); !ok) return std::unexpected(ok.error());
    FileDescriptor socket(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    // Turn strangers away: each of them costs the ranks at most kHelloLimit.
    if (!socket.open() || !check_user(socket)) continue;
    Hello hello{};
    Patience soon(std::min<Patience::Duration>(patience.left(std::chrono::steady_clock::now()), kHelloLimit), stop);
    auto brought = receive(socket, hello, 2, soon);
    if (!brought || hello.version != kVersion || hello.rank == 0 || hello.rank >= settings.ranks ||
        ranks[hello.rank].open() ||
        !same_proof({hello.proof.data(), hello.proof.size()}, proof(secret_, "", "local", hello.rank))) {
      continue;
    }
    processes[hello.rank] = std::move(brought->front());
    inboxes.of[hello.rank] = std::move(brought->back());
    ranks[hello.rank] = std::move(socket);
    ++met;
  }
  const Offer offer{.version = kVersion,
                    .ranks = settings.ranks,
                    .note_bytes = settings.note_bytes,
                    .chunk_bytes = settings.chunk_bytes,
                    .depth = settings.depth,
                    .bytes = layout_of(settings).bytes()};
  for (std::uint32_t r = 1; r < settings.ranks; ++r) {
    if (auto ok = send_all(ranks[r], offer, **arena, processes, inboxes.of); !ok) return std::unexpected(ok.error());
  }
  for (std::uint32_t r = 1; r < settings.ranks; ++r) {
    if (auto ok = hear(ranks[r], Word::mapped, patience); !ok) return std::unexpected(ok.error());
  }
  for (std::uint32_t r = 1; r < settings.ranks; ++r) {
    if (auto ok = send(ranks[r], Word::go); !ok) return std::unexpected(ok.error());
  }
  return std::make_unique<LocalGroup>(std::move(*arena), std::move(settings), std::move(processes), std::move(inboxes));
}

namespace {

constexpr int kLookEveryMs = 2;

Status go_to(const FileDescriptor& socket, const Secret& secret, Place place, Patience& patience) {
  sockaddr_un address;
  const socklen_t bytes = make_address(secret, address);
  while (connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    const bool later = errno == ECONNREFUSED && place == Place::may_open_later;
    if (!later || patience.left(std::chrono::steady_clock::now()) == Patience::Duration::zero())
      return failed("connect");
    pollfd stop{.fd = patience.stop(), .events = POLLIN, .revents = 0};
    if (poll(&stop, 1, kLookEveryMs) != 0) return strange("called off");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LocalGroup>> come(const Secret& secret, GroupSettings settings, Milliseconds limit, int stop,
                                         Place place) {
  Patience patience(limit, stop);
  const FileDescriptor socket = make_socket();
  if (!socket.open()) return failed("socket");
  if (auto ok = go_to(socket, secret, place, patience); !ok) return std::unexpected(ok.error());
  if (auto ok = check_user(socket); !ok) return std::unexpected(ok.error());
  Hello hello{.version = kVersion, .rank = settings.rank, .proof = {}};
  proof(secret, "", "local", settings.rank).copy(hello.proof.data(), hello.proof.size());
  const FileDescriptor self = own_process();
  if (!self.open()) return failed("pidfd_open");
  auto inbox = make_inbox();
  if (!inbox) return std::unexpected(inbox.error());
  if (auto ok = send(socket, hello, std::array{self.number(), inbox->second.number()}); !ok)
    return std::unexpected(ok.error());

  Offer offer{};
  auto memory = receive(socket, offer, 1, patience);
  if (!memory) return std::unexpected(memory.error());
  settings.note_bytes = offer.note_bytes;
  settings.chunk_bytes = offer.chunk_bytes;
  settings.depth = offer.depth;
  if (offer.version != kVersion || offer.ranks != settings.ranks || !can_be(settings) ||
      layout_of(settings).bytes() != offer.bytes)
    return strange("rank 0 runs another version of Tributary");
  auto arena = Arena::adopt(std::move(memory->front()), offer.bytes);
  if (!arena) return std::unexpected(arena.error());
  auto processes = receive_each(socket, settings.ranks, patience);
  if (!processes) return std::unexpected(processes.error());
  auto writable = receive_each(socket, settings.ranks, patience);
  if (!writable) return std::unexpected(writable.error());
  Inboxes inboxes{.of = std::move(*writable), .own = std::move(inbox->first)};
  if (auto ok = send(socket, Word::mapped); !ok) return std::unexpected(ok.error());
  if (auto ok = hear(socket, Word::go, patience); !ok) return std::unexpected(ok.error());
  return std::make_unique<LocalGroup>(std::move(*arena), std::move(settings), std::move(*processes),
                                      std::move(inboxes));
}

}  // namespace tributary::client::local
