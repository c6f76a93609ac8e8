#include "client/plugins/nccl/p2p/sockets/stream_socket.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tributary::nccl {
namespace {

bool is_not_now(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

msghdr message_of(std::span<iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return message;
}

}  // namespace

StreamSocket& StreamSocket::operator=(StreamSocket&& from) noexcept {
  if (this == &from) return *this;
  close();
  descriptor_ = std::exchange(from.descriptor_, -1);
  seal_ = std::move(from.seal_);
  peer_ = std::move(from.peer_);
  return *this;
}

void StreamSocket::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<std::size_t> StreamSocket::write(std::span<iovec> parts) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  ssize_t wrote = 0;
  if (seal_) {
    wrote = seal_->write(descriptor_, parts);
  } else if (parts.size() == 1) {
    wrote = ::send(descriptor_, parts.front().iov_base, parts.front().iov_len, kFlags);
  } else {
    const msghdr message = message_of(parts);
    wrote = ::sendmsg(descriptor_, &message, kFlags);
  }
  if (wrote >= 0) return static_cast<std::size_t>(wrote);
  if (is_not_now(errno)) return std::size_t{0};
  return std::unexpected(lost(errno));
}

Result<std::size_t> StreamSocket::read(std::span<iovec> parts) {
  ssize_t got = 0;
  if (seal_) {
    got = seal_->read(descriptor_, parts);
  } else if (parts.size() == 1) {
    got = ::recv(descriptor_, parts.front().iov_base, parts.front().iov_len, MSG_DONTWAIT);
  } else {
    msghdr message = message_of(parts);
    got = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
  }
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && is_not_now(errno)) return std::size_t{0};
  return std::unexpected(lost(got == 0 ? 0 : errno));
}

std::size_t StreamSocket::under_way() const noexcept {
  int bytes = 0;
  return ::ioctl(descriptor_, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

std::chrono::microseconds StreamSocket::shortest_round_trip() const noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  const bool says = ::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
                    bytes >= offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt;
  return says ? std::chrono::microseconds(info.tcpi_min_rtt) : std::chrono::seconds(1);
}

Status StreamSocket::check() const {
  pollfd one{.fd = descriptor_, .events = 0, .revents = 0};
  if (::poll(&one, 1, 0) <= 0 || (one.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0) return {};
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  return std::unexpected(lost(error));
}

Error StreamSocket::lost(int error) const {
  if (error == 0) return {Errc::peer_gone, peer_ + " closed the connection."};
  if (error == ETIMEDOUT) return {Errc::peer_gone, peer_ + " does not answer any more: the connection timed out."};
  if (error == EBADMSG) {
    return {Errc::corrupt, "a record of the sealed connection to " + peer_ +
                               " is not authentic: it was changed on its way, or by a process between the two ends."};
  }
  return {Errc::peer_gone, "the connection to " + peer_ + " broke: " + std::system_category().message(error) + "."};
}

}  // namespace tributary::nccl
