#include "transport/shm/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tributary::transport {
namespace {

struct UnixAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

UnixAddress address_of(const std::string& name) noexcept {
  UnixAddress unix_address;
  unix_address.address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof unix_address.address.sun_path - 1);
  std::memcpy(unix_address.address.sun_path + 1, name.data(), bytes);  // the first byte stays 0: an abstract
                                                                       // name
  unix_address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return unix_address;
}

OwnedDescriptor make_socket() noexcept {
  return OwnedDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

std::string shared_name(const std::string& endpoint) {
  return "tributary-shm/" + endpoint;
}

std::expected<OwnedDescriptor, int> listen_at_name(const std::string& name) noexcept {
  OwnedDescriptor socket = make_socket();
  const UnixAddress address = address_of(name);
  if (socket.is_open() && ::bind(socket.get(), address.get(), address.bytes) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  return std::unexpected(errno);
}

std::expected<OwnedDescriptor, int> connect_to_name(const std::string& name) noexcept {
  OwnedDescriptor socket = make_socket();
  const UnixAddress address = address_of(name);
  if (socket.is_open() && ::connect(socket.get(), address.get(), address.bytes) == 0) return socket;
  return std::unexpected(errno);
}

bool trusted_user(int socket) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0 || ::geteuid() == 0;
}

bool send_message(int socket, std::span<const std::byte> message, int descriptor) noexcept {
  iovec data{.iov_base = const_cast<std::byte*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

ssize_t receive_message(int socket, std::span<std::byte> message, OwnedDescriptor* descriptor) noexcept {
  iovec data{.iov_base = message.data(), .iov_len = message.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptor != nullptr) {  // room for a descriptor, without which the system would drop it
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  const ssize_t got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 || descriptor == nullptr) return got;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return got;
  const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);  // one, or two for
                                                                             // alignment
  for (std::size_t i = 0; i < count; ++i) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights) + i * sizeof number, sizeof number);
    descriptor->reset(number);  // closes a descriptor that came earlier
  }
  return got;
}

}  // namespace tributary::transport
