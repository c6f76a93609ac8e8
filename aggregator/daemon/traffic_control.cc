#include "aggregator/daemon/traffic_control.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

namespace tributary::aggregator {
namespace {

constexpr std::uint64_t kTickNs = 64;  // the kernel counts a class's burst in this unit of time
constexpr std::size_t kAnswerBytes = 64U << 10;
constexpr std::uint32_t kRateWordMax = UINT32_MAX;
// Linux 6.3 has this attribute; older headers do not, and the kernel's value never changes.
constexpr std::uint16_t kGsoIpv4MaxSize = 63;

std::string words_of(int error) {
  return std::generic_category().message(error);
}

std::uint32_t ticks_of(std::uint64_t bytes, std::uint64_t rate) {
  const std::uint64_t ns = static_cast<std::uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ns / kTickNs + 1, UINT32_MAX));
}

/// HTB needs no table of times for each length of a packet if it is told the kind of the link.
tc_ratespec ratespec_of(std::uint64_t rate) {
  tc_ratespec spec{};
  spec.linklayer = TC_LINKLAYER_ETHERNET;
  spec.rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(rate, kRateWordMax));
  return spec;
}

/// The attributes that follow a fixed part of `fixed_bytes` in a message. Calls see(type, bytes) for each.
template <class See>
void each_attribute(std::span<const std::byte> message, std::size_t fixed_bytes, See see) {
  std::size_t at = NLMSG_SPACE(0) + NLMSG_ALIGN(fixed_bytes);
  while (at + sizeof(rtattr) <= message.size()) {
    rtattr head{};
    std::memcpy(&head, message.data() + at, sizeof head);
    if (head.rta_len < sizeof head || at + head.rta_len > message.size()) return;
    see(head.rta_type, message.subspan(at + sizeof head, head.rta_len - sizeof head));
    at += RTA_ALIGN(head.rta_len);
  }
}

std::uint32_t word_of(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::string text_of(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

/// Returns the error that an answer reports; 0 means success.
Status status_of(std::span<const std::byte> answer) {
  nlmsghdr head{};
  nlmsgerr error{};
  std::memcpy(&head, answer.data(), sizeof head);
  if (answer.size() < NLMSG_SPACE(sizeof error)) return fail(Errc::io, "the kernel's answer is cut short");
  std::memcpy(&error, answer.data() + NLMSG_SPACE(0), sizeof error);
  if (error.error == 0) return {};
  std::string why = words_of(-error.error);
  // An error repeats the request, which the socket's option NETLINK_CAP_ACK has cut off, and then gives its reason.
  if ((head.nlmsg_flags & NLM_F_ACK_TLVS) != 0) {
    each_attribute(answer, sizeof error, [&](std::uint16_t type, std::span<const std::byte> bytes) {
      if (type == NLMSGERR_ATTR_MSG) why += " (" + text_of(bytes) + ")";
    });
  }
  return fail(error.error == -EPERM ? Errc::denied : Errc::io, why);
}

}  // namespace

std::string handle_text(std::uint32_t handle) {
  const auto hexadecimal = [](std::uint32_t number) {
    std::array<char, 8> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number, 16);
    return std::string(text.data(), end);
  };
  return hexadecimal(handle >> 16U) + ":" + ((handle & 0xFFFFU) == 0 ? "" : hexadecimal(handle & 0xFFFFU));
}

std::optional<std::uint32_t> parse_class_handle(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint32_t handle = 0;
  for (const std::string_view part : {text.substr(0, colon), text.substr(colon + 1)}) {
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number, 16);
    if (error != std::errc() || end != part.data() + part.size() || number == 0) return std::nullopt;
    handle = (handle << 16U) | number;
  }
  return handle;
}

/// A request under construction.
class TrafficControl::Message {
 public:
  template <class Fixed>
  Message(std::uint16_t type, std::uint16_t flags, const Fixed& fixed) {
    head_.nlmsg_type = type;
    head_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    bytes_.resize(NLMSG_SPACE(0));
    append(&fixed, sizeof fixed);
  }
  void put(std::uint16_t type, const void* data, std::size_t size) {
    const rtattr head{.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(size)), .rta_type = type};
    append(&head, sizeof head);
    append(data, size);
  }
  template <class Value>
  void put(std::uint16_t type, const Value& value) {
    put(type, &value, sizeof value);
  }
  void put_kind(std::string_view kind) {
    const std::string ended(kind);
    put(TCA_KIND, ended.c_str(), ended.size() + 1);
  }
  /// Puts the attributes that `fill` puts into one attribute.
  template <class Fill>
  void nest(std::uint16_t type, Fill fill) {
    const std::size_t at = bytes_.size();
    put(type, nullptr, 0);
    fill();
    const auto length = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &length, sizeof length);
  }
  [[nodiscard]] std::span<const std::byte> finish(std::uint32_t sequence) {
    head_.nlmsg_seq = sequence;
    head_.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &head_, sizeof head_);
    return bytes_;
  }
  [[nodiscard]] bool lists() const noexcept { return (head_.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP; }

 private:
  void append(const void* data, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + NLMSG_ALIGN(size));
    if (size > 0) std::memcpy(bytes_.data() + at, data, size);
  }

  nlmsghdr head_{};
  std::vector<std::byte> bytes_;
};

Result<TrafficControl> TrafficControl::open() {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (socket < 0) return fail(Errc::io, "no socket of rtnetlink can be opened: " + words_of(errno));
  TrafficControl made(socket);
  const int on = 1;
  const timeval limit{.tv_sec = 2, .tv_usec = 0};
  (void)::setsockopt(socket, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  (void)::setsockopt(socket, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return made;
}

TrafficControl::~TrafficControl() {
  if (socket_ >= 0) ::close(socket_);
}

Result<std::vector<std::vector<std::byte>>> TrafficControl::ask(Message& message) {
  const std::uint32_t sequence = ++sequence_;
  const auto request = message.finish(sequence);
  if (::send(socket_, request.data(), request.size(), 0) < 0)
    return fail(errno == EPERM ? Errc::denied : Errc::io, words_of(errno));
  std::vector<std::vector<std::byte>> answers;
  std::vector<std::byte> buffer(kAnswerBytes);
  for (;;) {
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got < 0) return fail(Errc::io, "the kernel does not answer: " + words_of(errno));
    std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(got));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr head{};
      std::memcpy(&head, rest.data(), sizeof head);
      if (head.nlmsg_len < sizeof head || head.nlmsg_len > rest.size()) break;
      const auto one = rest.first(head.nlmsg_len);
      rest = rest.subspan(std::min<std::size_t>(rest.size(), NLMSG_ALIGN(head.nlmsg_len)));
      if (head.nlmsg_seq != sequence) continue;  // the late answer to a request that was given up
      if (head.nlmsg_type == NLMSG_DONE) return answers;
      if (head.nlmsg_type == NLMSG_ERROR) {
        if (auto ok = status_of(one); !ok) return std::unexpected(ok.error());
        return answers;
      }
      answers.emplace_back(one.begin(), one.end());
      if (!message.lists()) return answers;
    }
  }
}

Status TrafficControl::tell(Message& message) {
  const auto answers = ask(message);
  if (!answers) return std::unexpected(answers.error());
  return {};
}

namespace {

tcmsg place_of(std::uint32_t interface, std::uint32_t parent, std::uint32_t handle) {
  tcmsg place{};
  place.tcm_family = AF_UNSPEC;
  place.tcm_ifindex = static_cast<int>(interface);
  place.tcm_parent = parent;
  place.tcm_handle = handle;
  return place;
}

}  // namespace

Result<std::vector<Qdisc>> TrafficControl::qdiscs(std::uint32_t interface) {
  Message message(RTM_GETQDISC, NLM_F_DUMP, place_of(interface, 0, 0));
  const auto answers = ask(message);
  if (!answers) return std::unexpected(answers.error());
  std::vector<Qdisc> list;
  for (const auto& answer : *answers) {
    tcmsg place{};
    if (answer.size() < NLMSG_SPACE(sizeof place)) continue;
    std::memcpy(&place, answer.data() + NLMSG_SPACE(0), sizeof place);
    if (place.tcm_ifindex != static_cast<int>(interface)) continue;
    Qdisc one{.kind = {}, .handle = place.tcm_handle, .parent = place.tcm_parent};
    each_attribute(answer, sizeof place, [&](std::uint16_t type, std::span<const std::byte> bytes) {
      if (type == TCA_KIND) one.kind = text_of(bytes);
    });
    list.push_back(std::move(one));
  }
  return list;
}

Result<std::uint32_t> TrafficControl::packet_bytes_max(std::uint32_t interface) {
  ifinfomsg which{};
  which.ifi_index = static_cast<int>(interface);
  Message message(RTM_GETLINK, 0, which);
  const auto answers = ask(message);
  if (!answers) return std::unexpected(answers.error());
  std::uint32_t longest = 0;
  for (const auto& answer : *answers) {
    each_attribute(answer, sizeof which, [&](std::uint16_t type, std::span<const std::byte> bytes) {
      if (type == IFLA_GSO_MAX_SIZE || type == kGsoIpv4MaxSize) longest = std::max(longest, word_of(bytes));
    });
  }
  return longest;
}

Status TrafficControl::add_htb(std::uint32_t interface, std::uint32_t parent, std::uint32_t handle,
                               std::uint32_t default_class) {
  Message message(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, place_of(interface, parent, handle));
  message.put_kind("htb");
  message.nest(TCA_OPTIONS, [&] {
    tc_htb_glob all{};
    all.version = 3;
    all.rate2quantum = 10;  // not used: each class has its quantum
    all.defcls = default_class & 0xFFFFU;
    message.put(TCA_HTB_INIT, all);
  });
  return tell(message);
}

Status TrafficControl::remove_qdisc(std::uint32_t interface, std::uint32_t parent, std::uint32_t handle) {
  Message message(RTM_DELQDISC, NLM_F_ACK, place_of(interface, parent, handle));
  return tell(message);
}

Status TrafficControl::set_class(std::uint32_t interface, const HtbClass& one) {
  Message message(RTM_NEWTCLASS, NLM_F_ACK | NLM_F_CREATE, place_of(interface, one.parent, one.handle));
  message.put_kind("htb");
  message.nest(TCA_OPTIONS, [&] {
    tc_htb_opt options{};
    options.rate = ratespec_of(one.rate);
    options.ceil = ratespec_of(one.ceil);
    options.buffer = ticks_of(one.burst_bytes, one.rate);
    options.cbuffer = ticks_of(one.burst_bytes, one.ceil);
    options.quantum = one.quantum_bytes;
    message.put(TCA_HTB_PARMS, options);
    if (one.rate > kRateWordMax) message.put(TCA_HTB_RATE64, one.rate);
    if (one.ceil > kRateWordMax) message.put(TCA_HTB_CEIL64, one.ceil);
  });
  return tell(message);
}

Status TrafficControl::set_queue(std::uint32_t interface, std::uint32_t parent, std::uint32_t bytes_max) {
  Message message(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, place_of(interface, parent, 0));
  message.put_kind("bfifo");
  message.put(TCA_OPTIONS, tc_fifo_qopt{.limit = bytes_max});
  return tell(message);
}

/// The filter is a program of classic BPF. The filter `fw`, made for marks, is missing in some kernels that have `bpf`.
Status TrafficControl::add_mark_filter(std::uint32_t interface, std::uint32_t parent) {
  constexpr std::uint32_t kPriority = 1;
  tcmsg place = place_of(interface, parent, 0);
  place.tcm_info = kPriority << 16U | htons(ETH_P_ALL);
  const std::array program{
      sock_filter{.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = std::uint32_t(SKF_AD_OFF + SKF_AD_MARK)},
      sock_filter{.code = BPF_RET | BPF_A, .jt = 0, .jf = 0, .k = 0}};
  Message message(RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, place);
  message.put_kind("bpf");
  message.nest(TCA_OPTIONS, [&] {
    message.put(TCA_BPF_OPS_LEN, static_cast<std::uint16_t>(program.size()));
    message.put(TCA_BPF_OPS, program);
  });
  return tell(message);
}

Status TrafficControl::remove_class(std::uint32_t interface, std::uint32_t handle) {
  Message message(RTM_DELTCLASS, NLM_F_ACK, place_of(interface, 0, handle));
  auto ok = tell(message);
  if (!ok && ok.error().message.starts_with(words_of(ENOENT))) return {};
  return ok;
}

}  // namespace tributary::aggregator
