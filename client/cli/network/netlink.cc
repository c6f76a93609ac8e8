#include "client/cli/network/netlink.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

constexpr std::size_t kAlignment = NLMSG_ALIGNTO;
static_assert(NLMSG_ALIGNTO == RTA_ALIGNTO);

Error failure(std::string_view what, int number) {
  return Error{Errc::io, std::string(what) + ": " + std::strerror(number)};
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, std::uint16_t flags) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  append(bytes_of(header));
}

void NetlinkMessage::append(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
}

std::size_t NetlinkMessage::begin(std::uint16_t type) {
  const std::size_t at = bytes_.size();
  append(bytes_of(rtattr{.rta_len = 0, .rta_type = type}));
  return at;
}

void NetlinkMessage::end(std::size_t at) {
  const std::size_t length = bytes_.size() - at;
  TRIBUTARY_ASSERT(length <= UINT16_MAX, "an attribute of {} bytes", length);
  const auto value = static_cast<std::uint16_t>(length);
  std::memcpy(&bytes_[at + offsetof(rtattr, rta_len)], &value, sizeof value);
}

void NetlinkMessage::attribute(std::uint16_t type, std::span<const std::byte> value) {
  const std::size_t at = begin(type);
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  end(at);  // the length excludes the bytes that align the next attribute
  append({});
}

void NetlinkMessage::text(std::uint16_t type, std::string_view value) {
  const std::string ended(value);
  attribute(type, std::as_bytes(std::span(ended.c_str(), ended.size() + 1)));
}

std::span<const std::byte> NetlinkMessage::finish(std::uint32_t number) {
  const auto length = static_cast<std::uint32_t>(bytes_.size());
  std::memcpy(&bytes_[offsetof(nlmsghdr, nlmsg_len)], &length, sizeof length);
  std::memcpy(&bytes_[offsetof(nlmsghdr, nlmsg_seq)], &number, sizeof number);
  return bytes_;
}

Result<NetlinkSocket> NetlinkSocket::open() {
  const int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (descriptor < 0) return std::unexpected(failure("a netlink socket could not be made", errno));
  return NetlinkSocket(descriptor);
}

NetlinkSocket::NetlinkSocket(NetlinkSocket&& from) noexcept
    : descriptor_(std::exchange(from.descriptor_, -1)), number_(from.number_) {}

NetlinkSocket::~NetlinkSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status NetlinkSocket::ask(NetlinkMessage& message, std::string_view what) {
  const auto bytes = message.finish(++number_);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(descriptor_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
    return std::unexpected(failure(what, errno));
  // Make room for the request and some bytes more: the answer repeats a request that failed.
  std::vector<std::byte> answer(bytes.size() + 1024);
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } read{};
  do {
    const ssize_t got = recv(descriptor_, answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(failure(what, errno));
    if (static_cast<std::size_t>(got) < sizeof read)
      return fail(Errc::corrupt, std::string(what) + ": the kernel's answer is cut short");
    std::memcpy(&read, answer.data(), sizeof read);
  } while (read.header.nlmsg_seq != number_);
  if (read.header.nlmsg_type != NLMSG_ERROR)
    return fail(Errc::corrupt, std::string(what) + ": the kernel's answer is of another kind");
  if (read.error.error != 0) return std::unexpected(failure(what, -read.error.error));
  return {};
}

}  // namespace tributary::cli
