// A hostile process of this user knows the secret, and comes to the place where the ranks of one host meet. It acts as
// ranks that come to rank 0's place, and as rank 0 of such a place. It sends messages of every length, with any number
// of descriptors, in any order. A rank that has met it must get a group or an error.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "client/collectives/local/meeting_place.h"
#include "tests/fuzz/transport/script.h"

using namespace tributary;
using namespace tributary::client;
using namespace tributary::client::local;
using tributary::fuzz::Script;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kRanks = 3;

const Secret& secret() {
  static const Secret one = *random_secret();  // the place of another process has another name
  return one;
}

FileDescriptor make_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

std::pair<sockaddr_un, socklen_t> address() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "tributary-" + proof(secret(), "", "local-name", 0).substr(0, 48);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

void send(int to, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  static_cast<void>(::sendmsg(to, &header, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/// One message with some descriptors: the expected message, or the expected message with a changed part.
struct Said {
  std::vector<std::byte> bytes;
  std::vector<FileDescriptor> descriptors;
  template <class T>
  static std::vector<std::byte> of(const T& what) {
    const auto bytes = std::as_bytes(std::span(&what, 1));
    return {bytes.begin(), bytes.end()};
  }
  void change(Script& script) {
    const std::uint8_t how = script.byte();
    if (how % 4 != 3 || bytes.empty()) return;
    const std::size_t at = script.byte() % bytes.size();
    const std::size_t width = std::min<std::size_t>(std::size_t{1} << (how >> 2U) % 4, bytes.size() - at);
    const std::uint64_t value = script.number(width);
    std::memcpy(&bytes[at], &value, width);
    if (how >= 192) bytes.resize(script.byte());
    if (how % 32 == 31) descriptors.resize(script.byte() % 3);
    if (how % 32 == 15) descriptors.emplace_back(::eventfd(0, EFD_CLOEXEC));
  }
  void go(int to) const {
    std::vector<int> numbers;
    for (const FileDescriptor& one : descriptors) numbers.push_back(one.number());
    send(to, bytes, numbers);
  }
};

/// Makes a few descriptors of one kind.
std::vector<FileDescriptor> descriptors(std::size_t count) {
  std::vector<FileDescriptor> some;
  for (std::size_t i = 0; i < count; ++i) some.emplace_back(::eventfd(0, EFD_CLOEXEC));
  return some;
}

struct Hello {
  std::uint32_t version = 2, rank = 0;
  std::array<char, 64> proof{};
};
struct Offer {
  std::uint32_t version = 2, ranks = kRanks;
  std::uint64_t note_bytes = 8192, chunk_bytes = 4096, depth = 2, bytes = 0;
};

/// Sends all messages of the ranks before rank 0 looks.
void come_to_it(Script& script) {
  auto place = MeetingPlace::open(secret());
  if (!place) std::abort();
  const auto [to, length] = address();
  std::vector<FileDescriptor> sockets;
  for (int strangers = 2 + script.byte() % 3; strangers > 0; --strangers) {
    sockets.push_back(make_socket());
    const int socket = sockets.back().number();
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), length) != 0) std::abort();
    Hello hello{.rank = 1 + script.byte() % kRanks};
    proof(secret(), "", "local", hello.rank).copy(hello.proof.data(), hello.proof.size());
    Said said{.bytes = Said::of(hello), .descriptors = descriptors(2)};
    said.change(script);
    said.go(socket);
    Said mapped{.bytes = Said::of(std::uint32_t{1}), .descriptors = {}};
    mapped.change(script);
    mapped.go(socket);
    if (script.byte() % 8 == 0) sockets.pop_back();
  }
  const GroupSettings settings{.rank = 0, .ranks = kRanks, .chunk_bytes = 4096, .depth = 2, .host = "here"};
  if (auto group = place->gather(settings, 2ms)) (*group)->inspect();
}

void let_it_come(Script& script) {
  const FileDescriptor listener = make_socket();
  const auto [at, length] = address();
  if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&at), length) != 0 ||
      ::listen(listener.number(), 4) != 0) {
    std::abort();
  }
  const GroupSettings settings{.rank = 1, .ranks = kRanks, .host = "here"};
  GroupSettings told = settings;
  Offer offer;
  const std::uint8_t how = script.byte();
  if (how % 2 != 0) offer.note_bytes = script.number(8);
  if (how % 4 == 3) offer.chunk_bytes = script.number(8);
  if ((how & 4U) != 0) offer.depth = script.number(8);
  told.note_bytes = offer.note_bytes;
  told.chunk_bytes = offer.chunk_bytes;
  told.depth = offer.depth;
  offer.bytes = layout_of(told).bytes();
  std::vector<Said> all;
  FileDescriptor memory(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Make as much memory as the offer says, if the system can.
  const std::uint64_t bytes = (how & 8U) != 0 ? script.number(3) : std::min<std::uint64_t>(offer.bytes, 16U << 20);
  if (::ftruncate(memory.number(), static_cast<off_t>(bytes)) != 0) std::abort();
  if ((how & 48U) != 48U) ::fcntl(memory.number(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
  all.push_back({.bytes = Said::of(offer), .descriptors = {}});
  all.back().descriptors.push_back(std::move(memory));
  all.push_back({.bytes = Said::of(std::uint32_t{2}), .descriptors = descriptors(kRanks)});
  all.push_back({.bytes = Said::of(std::uint32_t{2}), .descriptors = descriptors(kRanks)});
  all.push_back({.bytes = Said::of(std::uint32_t{2}), .descriptors = {}});  // the message "go"
  for (Said& one : all) one.change(script);
  std::jthread rank_0([&listener, &all] {
    const FileDescriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    for (const Said& one : all) one.go(socket.number());
    ::shutdown(socket.number(), SHUT_WR);
    std::array<char, 256> heard{};
    while (::recv(socket.number(), heard.data(), heard.size(), 0) > 0) {
    }
  });
  const auto group = come(secret(), settings, 2000ms);
  if (!group) return;
  Offer taken;
  std::memcpy(&taken, all.front().bytes.data(), sizeof taken);
  told.note_bytes = taken.note_bytes;
  told.chunk_bytes = taken.chunk_bytes;
  told.depth = taken.depth;
  if (!can_be(told) || layout_of(told).bytes() != taken.bytes) std::abort();
  (*group)->inspect();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (host_token().empty()) return 0;  // this system cannot share memory
  Script script({data, size});
  script.byte() % 2 == 0 ? come_to_it(script) : let_it_come(script);
  return 0;
}
