#include "client/cli/doctor/qos.h"

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace tributary::cli::doctor {
namespace {

constexpr std::size_t kInterfaceNameMax = 15;

using Bytes = std::span<const std::byte>;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

void pad(std::vector<std::byte>& message) {
  message.resize(aligned(message.size()));
}

template <class T>
void put(std::vector<std::byte>& message, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  message.insert(message.end(), bytes.begin(), bytes.end());
}

template <class T>
std::optional<T> get(Bytes bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Returns the payloads of the attributes of one type.
std::vector<Bytes> attributes(Bytes all, std::uint16_t type) {
  std::vector<Bytes> found;
  while (const auto head = get<nlattr>(all)) {
    if (head->nla_len < sizeof(nlattr) || head->nla_len > all.size()) break;
    if ((head->nla_type & NLA_TYPE_MASK) == type)
      found.push_back(all.subspan(sizeof(nlattr), head->nla_len - sizeof(nlattr)));
    all = all.subspan(std::min(aligned(head->nla_len), all.size()));
  }
  return found;
}

std::vector<std::byte> question(const std::string& interface) {
  std::vector<std::byte> message;
  put(message,
      nlmsghdr{.nlmsg_len = 0, .nlmsg_type = RTM_GETDCB, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1, .nlmsg_pid = 0});
  put(message, dcbmsg{.dcb_family = AF_UNSPEC, .cmd = DCB_CMD_IEEE_GET, .dcb_pad = 0});
  pad(message);
  put(message, nlattr{.nla_len = static_cast<std::uint16_t>(sizeof(nlattr) + interface.size() + 1),
                      .nla_type = DCB_ATTR_IFNAME});
  const auto name = std::as_bytes(std::span(interface.c_str(), interface.size() + 1));
  message.insert(message.end(), name.begin(), name.end());
  pad(message);
  const auto length = static_cast<std::uint32_t>(message.size());
  std::memcpy(message.data(), &length, sizeof length);
  return message;
}

/// Sends the question, and waits for the answer for at most a second.
std::vector<std::byte> answer_to(const std::vector<std::byte>& asked) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return {};
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::vector<std::byte> answer(64U << 10);
  ssize_t got = -1;
  if (send(fd, asked.data(), asked.size(), 0) == static_cast<ssize_t>(asked.size()))
    got = recv(fd, answer.data(), answer.size(), 0);
  close(fd);
  answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return answer;
}

void read_applications(Bytes table, Qos& qos) {
  for (const Bytes one : attributes(table, DCB_ATTR_IEEE_APP)) {
    const auto app = get<dcb_app>(one);
    if (app && app->selector == IEEE_8021QAZ_APP_SEL_DSCP)
      qos.dscp_priorities[static_cast<std::uint8_t>(app->protocol)] = app->priority;
  }
}

}  // namespace

std::optional<Qos> ask_kernel_for_qos(const std::string& interface) {
  if (interface.empty() || interface.size() > kInterfaceNameMax) return std::nullopt;
  const std::vector<std::byte> answer = answer_to(question(interface));
  const auto head = get<nlmsghdr>(answer);
  constexpr std::size_t kHeads = aligned(sizeof(nlmsghdr)) + aligned(sizeof(dcbmsg));
  if (!head || head->nlmsg_type != RTM_GETDCB || answer.size() < kHeads) return std::nullopt;
  const auto ieee = attributes(Bytes(answer).subspan(kHeads), DCB_ATTR_IEEE);
  if (ieee.empty()) return std::nullopt;
  const auto pfcs = attributes(ieee.front(), DCB_ATTR_IEEE_PFC);
  const auto pfc = pfcs.empty() ? std::nullopt : get<ieee_pfc>(pfcs.front());
  if (!pfc) return std::nullopt;
  Qos qos{.pfc_enabled = pfc->pfc_en, .dscp_priorities = {}};
  for (const Bytes table : attributes(ieee.front(), DCB_ATTR_IEEE_APP_TABLE)) read_applications(table, qos);
  return qos;
}

}  // namespace tributary::cli::doctor
